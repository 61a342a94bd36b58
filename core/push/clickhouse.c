// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/clickhouse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define URL_BYTES_MAX  8192
#define AT_ONCE_S      1e-9
#define WORD_BYTES_MAX 65536 /* for an answer of a few words */

/* Settings of all requests, supported by all versions. Each answer is complete or an error. An
 * insert over a Distributed table has arrived, or is an error. */
#define SETTINGS "wait_end_of_query=1&insert_distributed_sync=1"

/* From dbms/src/Common/ErrorCodes.cpp of ClickHouse; the numbers never change. */
enum {
	NO_SUCH_COLUMN_IN_TABLE = 16,
	CANNOT_PARSE_INPUT = 27,
	UNKNOWN_FUNCTION = 46,
	UNKNOWN_IDENTIFIER = 47,
	TYPE_MISMATCH = 53,
	UNKNOWN_TABLE = 60,
	SYNTAX_ERROR = 62,
	UNKNOWN_DATABASE = 81,
	UNKNOWN_SETTING = 115,
	READONLY = 164,
	BAD_GET = 170, /* no such cluster */
	UNKNOWN_USER = 192,
	WRONG_PASSWORD = 193,
	REQUIRED_PASSWORD = 194,
	MEMORY_LIMIT_EXCEEDED = 241,
	CANNOT_COMPILE_REGEXP = 427,
	ACCESS_DENIED = 497,
	AUTHENTICATION_FAILED = 516,
	CLUSTER_DOESNT_EXIST = 701,
	POCO_EXCEPTION = 1000, /* 18.16 also uses it if it requires another authentication */
};

/* Returns the number in "Code: 60, e.displayText() = ..." or "Code: 60. DB::Exception: ...", after
 * any other text. */
static int code_in(const char *text)
{
	const char *at = text ? strstr(text, "Code: ") : NULL;

	return at ? atoi(at + strlen("Code: ")) : 0;
}

/* Classifies errors by their number, as 18.16 answers most errors with status 500. */
static enum sent classify(const struct http_reply *reply, enum sent by_status)
{
	if (by_status == SENT_OK)
		return by_status;
	switch (code_in(reply->body)) {
	case MEMORY_LIMIT_EXCEEDED:
		return SENT_TOO_LARGE;
	case NO_SUCH_COLUMN_IN_TABLE:
	case CANNOT_PARSE_INPUT:
	case UNKNOWN_FUNCTION:
	case UNKNOWN_IDENTIFIER:
	case TYPE_MISMATCH:
	case UNKNOWN_TABLE:
	case SYNTAX_ERROR:
	case UNKNOWN_DATABASE:
	case UNKNOWN_SETTING:
	case READONLY:
	case BAD_GET:
	case UNKNOWN_USER:
	case WRONG_PASSWORD:
	case REQUIRED_PASSWORD:
	case CANNOT_COMPILE_REGEXP:
	case ACCESS_DENIED:
	case AUTHENTICATION_FAILED:
	case CLUSTER_DOESNT_EXIST:
		return SENT_DENIED;
	case POCO_EXCEPTION:
		return strstr(reply->body, "authentication") ? SENT_DENIED : by_status;
	default:
		return by_status;
	}
}

int clickhouse__init(struct clickhouse *clickhouse, const struct url *url, struct sender *sender,
		     struct err *err)
{
	const char *database = *url->path ? url->path + 1 : "default";

	*clickhouse = (struct clickhouse) { .sender = sender, .url = *url };
	if (strlen(database) >= sizeof(clickhouse->database) ||
	    strspn(database, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
		    strlen(database))
		return err__set(err, -EINVAL,
				"'%s' is not the name of a database. Use letters, digits and _: "
				"clickhouse://HOST:PORT/NAME",
				database);
	strcpy(clickhouse->database, database);
	snprintf(clickhouse->what, sizeof(clickhouse->what), "%s/%s", url->server, database);
	sender->classify = classify;
	return 0;
}

/* @database is NULL for requests without one. */
static int make_url(const struct clickhouse *clickhouse, const char *database, const char *sql,
		    bool ids, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%s/?" SETTINGS "%s%s%s", clickhouse->url.server,
			 database ? "&database=" : "", database ? database : "",
			 ids ? "&ids_structure=id+UInt64&ids_format=RowBinary" : "");

	if (!sql)
		return 0;
	n += snprintf(buf + n, size - n, "&query=");
	return url__encode(sql, buf + n, size - n);
}

static enum sent fail_long(struct err *err)
{
	err__set(err, -ENAMETOOLONG, "the query is too long");
	return SENT_FAILED;
}

enum sent clickhouse__insert_once(struct clickhouse *clickhouse, const char *sql,
				  const struct row_writer *rows, struct err *err)
{
	char url[URL_BYTES_MAX];
	const struct http_request request = { .url = url,
					      .content_type = "application/octet-stream",
					      .body = rows->data,
					      .len = rows->len,
					      .once = true };
	struct http_reply reply;
	enum sent sent;

	if (rows->failed) {
		err__set(err, -ENOMEM, "out of memory");
		return SENT_FAILED;
	}
	if (!rows->len)
		return SENT_OK;
	if (make_url(clickhouse, clickhouse->database, sql, false, url, sizeof(url)))
		return fail_long(err);
	sent = sender__once(clickhouse->sender, clickhouse->what, &request, &reply, err);
	if (sent == SENT_OK)
		http_reply__done(&reply);
	return sent;
}

enum sent clickhouse__insert(struct clickhouse *clickhouse, const char *sql,
			     const struct row_writer *rows, struct err *err)
{
	for (;;) {
		enum sent sent = clickhouse__insert_once(clickhouse, sql, rows, err);

		if (sent != SENT_AGAIN)
			return sent;
		sent = sender__wait(clickhouse->sender, clickhouse->what, err);
		if (sent != SENT_OK)
			return sent;
	}
}

static enum sent ask(struct clickhouse *clickhouse, const char *sql,
		     const struct clickhouse_ids *ids, size_t max, struct http_reply *ret,
		     struct err *err)
{
	char url[URL_BYTES_MAX];
	const struct http_request request = { .url = url,
					      .content_type = "text/plain",
					      .body = ids ? (const void *)ids->ids : sql,
					      .len = ids ? ids->n * sizeof(*ids->ids) : strlen(sql),
					      .part = ids ? "ids" : NULL,
					      .reply_max = max };

	if (make_url(clickhouse, clickhouse->database, ids ? sql : NULL, ids, url, sizeof(url)))
		return fail_long(err);
	return sender__post(clickhouse->sender, clickhouse->what, &request, ret, err);
}

enum sent clickhouse__ask(struct clickhouse *clickhouse, const char *sql,
			  const struct clickhouse_ids *ids, struct http_reply *ret, struct err *err)
{
	size_t left = CLICKHOUSE_ANSWERS_MAX - clickhouse->answered;
	enum sent sent = ask(clickhouse, sql, ids, max_of(left, (size_t)WORD_BYTES_MAX), ret, err);

	if (sent == SENT_OK)
		clickhouse->answered += min_of(ret->len, left);
	return sent;
}

struct row_reader clickhouse__rows(const struct http_reply *reply)
{
	const uint8_t *body = (const uint8_t *)reply->body;

	return (struct row_reader) { .at = body, .end = body + reply->len };
}

static enum sent run(struct clickhouse *clickhouse, const char *database, const char *sql,
		     struct err *err)
{
	char url[URL_BYTES_MAX];
	const struct http_request request = {
		.url = url, .content_type = "text/plain", .body = sql, .len = strlen(sql)
	};
	struct http_reply reply;
	enum sent sent;

	if (make_url(clickhouse, database, NULL, false, url, sizeof(url)))
		return fail_long(err);
	sent = sender__post(clickhouse->sender, clickhouse->what, &request, &reply, err);
	if (sent == SENT_OK)
		http_reply__done(&reply);
	return sent;
}

enum sent clickhouse__run(struct clickhouse *clickhouse, const char *sql, struct err *err)
{
	return run(clickhouse, clickhouse->database, sql, err);
}

/* ---- tables ---- */

/* The sharding keys of the Distributed tables. Definitions are sharded by their id, so that each is
 * in one place. Samples are sharded by load. All samples of a load thus share a shard, and another
 * attempt avoids a shard that is down. */
static const struct {
	const char *name, *sharding;
} tables[] = {
	{ "braid_meta", "cityHash64(key)" }, { "braid_loads", "load" },
	{ "braid_series", "series" },	     { "braid_samples", "load" },
	{ "braid_stacks", "stack" },	     { "braid_frames", "frame" },
};

extern const char asset_clickhouse_sql_start[];

/* Writes the TTL of a line "TTL COLUMN EXTRA@". */
static const char *put_ttl(const char *at, unsigned days, FILE *out)
{
	char column[32];
	unsigned extra;

	if (days && sscanf(at, "TTL %31s %u@", column, &extra) == 2)
		fprintf(out, "\nTTL %s + INTERVAL %u DAY", column, days + extra);
	return strchr(at, '@') + 1;
}

/* Returns the schema without its comments; the caller owns it. */
static char *schema(bool cluster, unsigned ttl_days)
{
	const char *at = asset_clickhouse_sql_start;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	while (out && *at) {
		size_t name = *at == '@' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;

		if (!strncmp(at, "--", 2)) {
			at += strcspn(at, "\n");
		} else if (!strncmp(at, "@TTL ", 5)) {
			at = put_ttl(at + 1, ttl_days, out);
		} else if (name) {
			fprintf(out, "%.*s%s", (int)name, at + 1, cluster ? "_local" : "");
			at += 1 + name;
		} else {
			fputc(*at++, out);
		}
	}
	if (out && fclose(out)) {
		free(text);
		text = NULL;
	}
	return text;
}

static enum sent create_all(struct clickhouse *clickhouse, bool cluster, unsigned ttl_days,
			    struct err *err)
{
	char *text = schema(cluster, ttl_days), *rest = text, *statement;
	enum sent sent = SENT_OK;

	if (!text) {
		err__set(err, -ENOMEM, "out of memory");
		return SENT_FAILED;
	}
	while (sent == SENT_OK && (statement = strsep(&rest, ";")))
		if (statement[strspn(statement, " \t\n")])
			sent = clickhouse__run(clickhouse, statement, err);
	free(text);
	return sent;
}

static enum sent create_distributed(struct clickhouse *clickhouse, const char *cluster,
				    struct err *err)
{
	const char *database = clickhouse->database;
	enum sent sent = SENT_OK;
	char sql[600];

	for (size_t i = 0; sent == SENT_OK && i < ARRAY_SIZE(tables); i++) {
		snprintf(sql, sizeof(sql),
			 "CREATE TABLE IF NOT EXISTS %s AS %s_local "
			 "ENGINE = Distributed('%s', %s, %s_local, %s)",
			 tables[i].name, tables[i].name, cluster, database, tables[i].name,
			 tables[i].sharding);
		sent = clickhouse__run(clickhouse, sql, err);
	}
	return sent;
}

/* A view of the loads that do not count: attempts that were not committed, and all but one of
 * several committed attempts. minIf() of no rows is 0, which is not a load. */
#define VOID_VIEW                                                                     \
	"CREATE VIEW IF NOT EXISTS braid_void AS SELECT load FROM ("                  \
	"SELECT groupUniqArray(load) AS loads, minIf(load, committed = 1) AS counts " \
	"FROM %s.braid_loads GROUP BY recording, first_sample, samples) "             \
	"ARRAY JOIN loads AS load WHERE load != counts"

static enum sent has_ttl(struct clickhouse *clickhouse, bool *ret, struct err *err)
{
	struct http_reply reply;
	unsigned major = 0, minor = 0;
	enum sent sent = ask(clickhouse, "SELECT version() FORMAT TabSeparated", NULL,
			     WORD_BYTES_MAX, &reply, err);

	if (sent != SENT_OK)
		return sent;
	if (!reply.body || sscanf(reply.body, "%u.%u", &major, &minor) != 2) {
		err__set(err, -EBADMSG, "%s is not a ClickHouse server", clickhouse->what);
		sent = SENT_DENIED;
	}
	*ret = major > 19 || (major == 19 && minor >= 6);
	http_reply__done(&reply);
	return sent;
}

static enum sent make_meta(struct clickhouse *clickhouse, struct err *err)
{
	struct row_writer rows = {};
	uint64_t random[2];
	char salt[CLICKHOUSE_SALT_MAX], sql[] = "INSERT INTO braid_meta FORMAT RowBinary";
	enum sent sent = clickhouse__salt(clickhouse, salt, err);

	if (sent != SENT_REFUSED)
		return sent;
	arc4random_buf(random, sizeof(random));
	snprintf(salt, sizeof(salt), "%016llx%016llx", (unsigned long long)random[0],
		 (unsigned long long)random[1]);
	row_writer__text(&rows, "version");
	row_writer__text(&rows, CLICKHOUSE_SCHEMA);
	row_writer__text(&rows, "salt");
	row_writer__text(&rows, salt);
	sent = clickhouse__insert(clickhouse, sql, &rows, err);
	row_writer__done(&rows);
	return sent;
}

enum sent clickhouse__create(struct clickhouse *clickhouse, const struct clickhouse_layout *layout,
			     struct clickhouse_created *ret, struct err *err)
{
	const char *cluster = layout->cluster;
	bool ttl = false;
	char sql[800];
	enum sent sent;

	*ret = (struct clickhouse_created) {};
	snprintf(sql, sizeof(sql), "CREATE DATABASE IF NOT EXISTS %s", clickhouse->database);
	sent = run(clickhouse, NULL, sql, err);
	if (sent == SENT_OK)
		sent = has_ttl(clickhouse, &ttl, err);
	if (sent == SENT_OK)
		sent = create_all(clickhouse, cluster, ttl ? layout->days : 0, err);
	if (sent == SENT_OK && cluster)
		sent = create_distributed(clickhouse, cluster, err);
	snprintf(sql, sizeof(sql), VOID_VIEW, clickhouse->database);
	if (sent == SENT_OK)
		sent = clickhouse__run(clickhouse, sql, err);
	if (sent != SENT_OK)
		return sent;
	ret->no_ttl = layout->days && !ttl;
	/* On 18.16, a server without the database counts as unreachable: do not wait for that. */
	if (cluster)
		clickhouse->sender->give_up_s = AT_ONCE_S;
	sent = make_meta(clickhouse, err);
	ret->incomplete = cluster && (sent == SENT_DENIED || sent == SENT_GAVE_UP);
	return ret->incomplete ? SENT_OK : sent;
}

static bool is_about_tables(const char *text)
{
	int code = code_in(text);

	return code == UNKNOWN_TABLE || code == UNKNOWN_DATABASE;
}

/* Returns SENT_REFUSED if there are no tables. If two processes created salts at once, the least
 * one counts. */
enum sent clickhouse__salt(struct clickhouse *clickhouse, char ret[CLICKHOUSE_SALT_MAX],
			   struct err *err)
{
	struct http_reply reply;
	struct row_reader rows;
	enum sent sent = ask(clickhouse,
			     "SELECT key, min(value) FROM braid_meta GROUP BY key "
			     "FORMAT RowBinary",
			     NULL, WORD_BYTES_MAX, &reply, err);
	bool known = true;

	*ret = '\0';
	if (sent == SENT_DENIED && is_about_tables(err->text))
		err__prefix(err, -ENOENT,
			    "the tables of braid may be missing there (--init creates them)");
	if (sent != SENT_OK)
		return sent;
	rows = clickhouse__rows(&reply);
	while (row_reader__more(&rows)) {
		char *key = row_reader__text(&rows), *value = row_reader__text(&rows);

		if (key && value && !strcmp(key, "salt"))
			snprintf(ret, CLICKHOUSE_SALT_MAX, "%s", value);
		if (key && value && !strcmp(key, "version"))
			known = !strcmp(value, CLICKHOUSE_SCHEMA);
		free(key);
		free(value);
	}
	http_reply__done(&reply);
	if (!known || rows.failed) {
		err__set(err, -EPROTO, "the tables in %s belong to another version of braid",
			 clickhouse->what);
		return SENT_DENIED;
	}
	if (*ret)
		return SENT_OK;
	err__set(err, -ENOENT, "%s has no tables of braid. Use --init to create them",
		 clickhouse->what);
	return SENT_REFUSED;
}
