/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CLICKHOUSE_H
#define BRAID_CLICKHOUSE_H

#include <stdint.h>

#include "core/push/row_binary.h"
#include "core/push/sender.h"
#include "core/push/url.h"

/* A ClickHouse server over HTTP, with the tables of assets/clickhouse.sql. */

#define CLICKHOUSE_SCHEMA   "2"
#define CLICKHOUSE_REST	    255 /* braid_stacks.age of occurrences after the last samples */
#define CLICKHOUSE_SALT_MAX 65	/* bytes, with the NUL */

struct clickhouse {
	struct sender *sender;
	struct url url;
	char database[64];
	char what[400];	 /* server and database, for messages */
	size_t answered; /* bytes of all answers of clickhouse__ask() */
};

/* Maximum bytes of all answers together. The rest of a longer answer is not read. */
#define CLICKHOUSE_ANSWERS_MAX (256UL << 20)

/* Sets up the connection and the sender's classification of results. Returns 0, or -EINVAL if the
 * path is not the name of a database. */
int clickhouse__init(struct clickhouse *clickhouse, const struct url *url, struct sender *sender,
		     struct err *err);

/* Sends rows for @sql, "INSERT INTO ...". clickhouse__insert_once() makes one attempt, as
 * sender__once(). */
enum sent clickhouse__insert_once(struct clickhouse *clickhouse, const char *sql,
				  const struct row_writer *rows, struct err *err);
enum sent clickhouse__insert(struct clickhouse *clickhouse, const char *sql,
			     const struct row_writer *rows, struct err *err);

/* Runs @sql, "SELECT ...", and returns its rows as RowBinary in the reply's body. @ids (may be
 * NULL) are numbers that @sql can use as the table `ids`, column `id`. */
struct clickhouse_ids {
	const uint64_t *ids;
	size_t n;
};
enum sent clickhouse__ask(struct clickhouse *clickhouse, const char *sql,
			  const struct clickhouse_ids *ids, struct http_reply *ret,
			  struct err *err);
struct row_reader clickhouse__rows(const struct http_reply *reply);

/* Executes another statement. */
enum sent clickhouse__run(struct clickhouse *clickhouse, const char *sql, struct err *err);

/* Returns the salt of the database's ids; SENT_DENIED if its tables have another version. */
enum sent clickhouse__salt(struct clickhouse *clickhouse, char ret[CLICKHOUSE_SALT_MAX],
			   struct err *err);

/* Creates the database and the tables of this server, unless they exist. */
struct clickhouse_layout {
	const char *cluster; /* NULL: none */
	unsigned days;	     /* days after which samples expire; 0: never */
};
struct clickhouse_created {
	bool no_ttl;	 /* the server is too old to remove old samples */
	bool incomplete; /* other servers of the cluster have no tables yet */
};
enum sent clickhouse__create(struct clickhouse *clickhouse, const struct clickhouse_layout *layout,
			     struct clickhouse_created *ret, struct err *err);

#endif
