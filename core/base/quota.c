// SPDX-License-Identifier: GPL-2.0-or-later
/* Accounts and their limits.
 *
 * There is an entry per subject, per user, one for all untrusted users and one for everything. A
 * charge is added to the entries of up to four levels, if all of them have room for it. Accounts
 * that no reader has open stay for a while. A file that is opened for each of a hundred processes
 * thus has one budget. The least recently used of these accounts is evicted first. An account whose
 * memory is still charged is never evicted.
 *
 * CPU time is only measured after it was spent, and is always added. An entry over its limit stays
 * over until its use falls to half of the limit. Otherwise a hostile file would get a moment of CPU
 * time again and again. */
#include "core/base/quota.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#include "core/base/stop.h"
#include "core/base/sudo_user.h"
#include "core/base/util.h"

#define ACCOUNTS_MAX 4096 /* accounts that no reader has open */
#define USERS_MAX    4096
#define EVICT_LOOKS  4

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define MS  1000000ULL

const struct quota_limits quota_usual = { {
	[QUOTA_FILE] = {
		[QUOTA_READ] = { 4 * GIB, 64 * MIB },
		[QUOTA_INFLATED] = { 2 * GIB, 32 * MIB },
		[QUOTA_HASHED] = { 2 * GIB, 32 * MIB },
		[QUOTA_CPU_NS] = { 5000 * MS, 50 * MS },
		[QUOTA_RETAINED] = { 768 * MIB, 0 },
		[QUOTA_INDEXED] = { 96 * MIB, 0 },
	},
	[QUOTA_USER] = {
		[QUOTA_READ] = { 8 * GIB, 128 * MIB },
		[QUOTA_INFLATED] = { 4 * GIB, 64 * MIB },
		[QUOTA_HASHED] = { 4 * GIB, 64 * MIB },
		[QUOTA_CPU_NS] = { 4000 * MS, 50 * MS },
		[QUOTA_RETAINED] = { 768 * MIB, 0 },
		[QUOTA_INDEXED] = { 256 * MIB, 0 },
	},
	[QUOTA_OTHERS] = {
		[QUOTA_READ] = { 16 * GIB, 256 * MIB },
		[QUOTA_INFLATED] = { 8 * GIB, 128 * MIB },
		[QUOTA_HASHED] = { 8 * GIB, 128 * MIB },
		[QUOTA_CPU_NS] = { 6000 * MS, 100 * MS },
		[QUOTA_RETAINED] = { 768 * MIB, 0 },
		[QUOTA_INDEXED] = { 384 * MIB, 0 },
	},
	[QUOTA_ALL] = {
		[QUOTA_READ] = { 64 * GIB, 512 * MIB },
		[QUOTA_INFLATED] = { 32 * GIB, 256 * MIB },
		[QUOTA_HASHED] = { 32 * GIB, 256 * MIB },
		[QUOTA_CPU_NS] = { 60000 * MS, 500 * MS },
		[QUOTA_RETAINED] = { QUOTA_RETAINED_MAX, 0 },
		[QUOTA_INDEXED] = { 512 * MIB, 0 },
	},
} };

struct use {
	uint64_t used, at_ns; /* use at the time at_ns */
	bool over;	      /* QUOTA_CPU_NS only */
};

struct entry {
	struct use uses[QUOTA_KINDS];
};

struct user {
	uint32_t uid;
	struct entry entry;
	UT_hash_handle hh;
};

struct identity { /* has no padding, as its bytes are hashed */
	uint64_t dev, ino, size;
	int64_t mtime_ns;
	uint64_t uid;
};

struct quota_account {
	struct identity identity;
	struct entry entry;
	struct user *user; /* NULL: trusted user */
	uint32_t n_open;
	bool reported;
	char *name;
	UT_hash_handle hh; /* ordered by the time of the last opening */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct quota_limits *limits = &quota_usual;
static struct quota_account *accounts;
static struct user *users;
static struct entry others, all;
static uint64_t retained_max;
static struct {
	char *names[QUOTA_OVER_NAMES];
	enum quota_level levels[QUOTA_OVER_NAMES];
	uint64_t n;
} over;

static __thread struct quota_account *entered;
static __thread uint64_t entered_cpu_ns;

/* --- accounts --- */

static struct user *find_user(uint32_t uid)
{
	struct user *user;

	if (!uid || uid == getuid() || sudo_user__is(uid))
		return NULL;
	HASH_FIND(hh, users, &uid, sizeof(uid), user);
	if (user || HASH_COUNT(users) >= USERS_MAX)
		return user ? user : users; /* users beyond the limit share one entry */
	user = calloc(1, sizeof(*user));
	if (!user)
		return users;
	user->uid = uid;
	HASH_ADD(hh, users, uid, sizeof(uid), user);
	return user;
}

static void free_account(struct quota_account *account)
{
	HASH_DEL(accounts, account);
	free(account->name);
	free(account);
}

/* Evicts the oldest accounts. An account that must stay moves to the end. Many open accounts (of
 * 100,000 short processes) thus cost each call at most EVICT_LOOKS steps. */
static void evict(void)
{
	for (int i = 0; i < EVICT_LOOKS && HASH_COUNT(accounts) > ACCOUNTS_MAX; i++) {
		struct quota_account *account = accounts;

		if (!account->n_open && !account->entry.uses[QUOTA_RETAINED].used &&
		    !account->entry.uses[QUOTA_INDEXED].used) {
			free_account(account);
			continue;
		}
		HASH_DEL(accounts, account);
		HASH_ADD(hh, accounts, identity, sizeof(account->identity), account);
	}
}

static struct quota_account *add_account(const struct quota_subject *subject,
					 const struct identity *identity)
{
	struct quota_account *account = calloc(1, sizeof(*account));

	if (!account)
		return NULL;
	account->identity = *identity;
	account->name = strdup(subject->name);
	account->user = find_user(subject->uid);
	if (!account->name) {
		free(account);
		return NULL;
	}
	return account;
}

struct quota_account *quota__open(const struct quota_subject *subject)
{
	struct identity identity = { subject->dev, subject->ino, subject->size, subject->mtime_ns,
				     subject->uid };
	struct quota_account *account;

	pthread_mutex_lock(&lock);
	HASH_FIND(hh, accounts, &identity, sizeof(identity), account);
	if (account)
		HASH_DEL(accounts, account);
	else
		account = add_account(subject, &identity);
	if (account) {
		account->n_open++;
		HASH_ADD(hh, accounts, identity, sizeof(identity), account);
		evict();
	}
	pthread_mutex_unlock(&lock);
	return account;
}

void quota__close(struct quota_account *account)
{
	if (!account)
		return;
	pthread_mutex_lock(&lock);
	account->n_open--;
	evict();
	pthread_mutex_unlock(&lock);
}

struct quota_account *quota__hold(struct quota_account *account)
{
	if (!account)
		return NULL;
	pthread_mutex_lock(&lock);
	account->n_open++;
	pthread_mutex_unlock(&lock);
	return account;
}

/* --- charging --- */

static void forgive(struct use *use, const struct quota_limit *limit, uint64_t now)
{
	uint64_t passed_ns = now > use->at_ns ? now - use->at_ns : 0, forgiven;

	forgiven =
		min_of(use->used, (uint64_t)((double)passed_ns * limit->per_second / NSEC_PER_SEC));
	/* At a small rate, short times round to 0: leave at_ns unchanged so that they add up. */
	if (forgiven || !use->used)
		use->at_ns = now;
	use->used -= forgiven;
	if (use->used <= limit->burst / 2)
		use->over = false;
}

struct levels {
	struct entry *entries[QUOTA_LEVELS]; /* NULL: no limit at this level */
};

static struct levels levels_of(struct quota_account *account)
{
	struct levels levels = { { &account->entry, NULL, NULL, &all } };

	if (account->user) {
		levels.entries[QUOTA_USER] = &account->user->entry;
		levels.entries[QUOTA_OTHERS] = &others;
	}
	return levels;
}

static void note_over(struct quota_account *account, enum quota_level level)
{
	if (account->reported)
		return;
	account->reported = true;
	if (over.n < QUOTA_OVER_NAMES) {
		over.names[over.n] = strdup(account->name);
		over.levels[over.n] = level;
	}
	over.n++;
}

/* Returns the first level without room for @n more, or QUOTA_LEVELS if all have room. */
static int full_level(const struct levels *levels, enum quota_kind kind, uint64_t n, uint64_t now)
{
	for (int i = 0; i < QUOTA_LEVELS; i++) {
		const struct quota_limit *limit = &limits->limits[i][kind];
		struct use *use = levels->entries[i] ? &levels->entries[i]->uses[kind] : NULL;

		if (!use)
			continue;
		forgive(use, limit, now);
		if (use->over || !fits_in(use->used, n, limit->burst))
			return i;
	}
	return QUOTA_LEVELS;
}

static int charge_bytes(struct quota_account *account, enum quota_kind kind, uint64_t n,
			uint64_t now)
{
	struct levels levels = levels_of(account);
	int full = full_level(&levels, kind, n, now);

	if (full != QUOTA_LEVELS) {
		note_over(account, full);
		return -EFBIG;
	}
	for (int i = 0; i < QUOTA_LEVELS; i++)
		if (levels.entries[i])
			levels.entries[i]->uses[kind].used += n;
	if (kind == QUOTA_RETAINED)
		retained_max = max_of(retained_max, all.uses[kind].used);
	return 0;
}

static int charge_cpu(struct quota_account *account, uint64_t ns, uint64_t now)
{
	struct levels levels = levels_of(account);
	int full = QUOTA_LEVELS;

	for (int i = 0; i < QUOTA_LEVELS; i++) {
		const struct quota_limit *limit = &limits->limits[i][QUOTA_CPU_NS];
		struct use *use = levels.entries[i] ? &levels.entries[i]->uses[QUOTA_CPU_NS] : NULL;

		if (!use)
			continue;
		use->used += ns;
		forgive(use, limit, now);
		use->over |= use->used > limit->burst;
		if (use->over && full == QUOTA_LEVELS)
			full = i;
	}
	if (full != QUOTA_LEVELS)
		note_over(account, full);
	return full != QUOTA_LEVELS ? -EFBIG : 0;
}

/* Charges the CPU time since the last call to the entered account. */
static int settle(uint64_t now)
{
	uint64_t cpu_ns, spent_ns;

	if (!entered)
		return 0;
	cpu_ns = thread_cpu_ns();
	spent_ns = cpu_ns - entered_cpu_ns;
	entered_cpu_ns = cpu_ns;
	return charge_cpu(entered, spent_ns, now);
}

int quota__charge(struct quota_account *account, enum quota_kind kind, uint64_t bytes)
{
	uint64_t now = now_ns();
	int ret;

	if (stop__is_due())
		return -EINTR;
	pthread_mutex_lock(&lock);
	ret = settle(now);
	if (!ret && account)
		ret = charge_bytes(account, kind, bytes, now);
	pthread_mutex_unlock(&lock);
	return ret;
}

int quota__refuse(struct quota_account *account)
{
	if (!account)
		return -EFBIG;
	pthread_mutex_lock(&lock);
	note_over(account, QUOTA_FILE);
	pthread_mutex_unlock(&lock);
	return -EFBIG;
}

void quota__give_back_of(struct quota_account *account, enum quota_kind kind, uint64_t bytes)
{
	struct levels levels;

	if (!account)
		return;
	pthread_mutex_lock(&lock);
	levels = levels_of(account);
	for (int i = 0; i < QUOTA_LEVELS; i++)
		if (levels.entries[i])
			levels.entries[i]->uses[kind].used -=
				min_of(bytes, levels.entries[i]->uses[kind].used);
	pthread_mutex_unlock(&lock);
}

struct quota_account *quota__enter(struct quota_account *account)
{
	struct quota_account *previous = entered;

	pthread_mutex_lock(&lock);
	settle(now_ns());
	pthread_mutex_unlock(&lock);
	entered = account;
	entered_cpu_ns = thread_cpu_ns();
	return previous;
}

void quota__leave(struct quota_account *previous)
{
	quota__enter(previous);
}

int quota__look(void)
{
	return quota__charge(NULL, QUOTA_READ, 0);
}

/* --- exceeded budgets --- */

const char *quota__over(size_t i, enum quota_level *ret_level)
{
	const char *name = NULL;

	pthread_mutex_lock(&lock);
	if (i < min_of(over.n, (uint64_t)QUOTA_OVER_NAMES)) {
		name = over.names[i] ? over.names[i] : "(a file)";
		*ret_level = over.levels[i];
	}
	pthread_mutex_unlock(&lock);
	return name;
}

uint64_t quota__over_count(void)
{
	uint64_t n;

	pthread_mutex_lock(&lock);
	n = over.n;
	pthread_mutex_unlock(&lock);
	return n;
}

uint64_t quota__retained(void)
{
	uint64_t retained;

	pthread_mutex_lock(&lock);
	retained = all.uses[QUOTA_RETAINED].used;
	pthread_mutex_unlock(&lock);
	return retained;
}

uint64_t quota__retained_max(void)
{
	uint64_t retained;

	pthread_mutex_lock(&lock);
	retained = retained_max;
	pthread_mutex_unlock(&lock);
	return retained;
}

void quota__set_limits(const struct quota_limits *given)
{
	struct quota_account *account, *next;
	struct user *user;

	pthread_mutex_lock(&lock);
	limits = given ? given : &quota_usual;
	for (account = accounts; account; account = next) {
		next = account->hh.next;
		account->entry = (struct entry) {};
		account->reported = false;
		if (!account->n_open)
			free_account(account);
	}
	for (user = users; user; user = user->hh.next)
		user->entry = (struct entry) {};
	others = all = (struct entry) {};
	retained_max = 0;
	for (size_t i = 0; i < min_of(over.n, (uint64_t)QUOTA_OVER_NAMES); i++)
		free(over.names[i]);
	memset(&over, 0, sizeof(over));
	pthread_mutex_unlock(&lock);
}
