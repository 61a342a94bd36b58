/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CLICKHOUSE_H
#define BRAID_CLICKHOUSE_H

#include <stdint.h>

#include "core/push/row_binary.h"
#include "core/push/sender.h"
#include "core/push/url.h"

/* A ClickHouse server over HTTP, and what the tables of assets/clickhouse.sql are for. */

#define CLICKHOUSE_SCHEMA   "2"
#define CLICKHOUSE_REST	    255 /* braid_stacks.age of what followed the last samples */
#define CLICKHOUSE_SALT_MAX 65	/* with the NUL */

struct clickhouse {
	struct sender *sender;
	struct url url;
	char database[64];
	char what[400];	 /* for sentences: server and database */
	size_t answered; /* bytes of all answers of clickhouse__ask */
};

/* Bytes of all answers together: a server that sends more is not read to its end. */
#define CLICKHOUSE_ANSWERS_MAX (256UL << 20)

/* -EINVAL: the path is not the name of a database. Sets what the sender takes for which result. */
int clickhouse__init(struct clickhouse *clickhouse, const struct url *url, struct sender *sender,
		     struct err *err);

/* Sends rows for `sql`, "INSERT INTO ...". One attempt: as sender__once. */
enum sent clickhouse__insert_once(struct clickhouse *clickhouse, const char *sql,
				  const struct row_writer *rows, struct err *err);
enum sent clickhouse__insert(struct clickhouse *clickhouse, const char *sql,
			     const struct row_writer *rows, struct err *err);

/* What `sql`, "SELECT ...", gives, as RowBinary in the reply's body. `ids` (may be NULL): numbers
 * that `sql` knows as the table `ids`, column `id`. */
struct clickhouse_ids {
	const uint64_t *ids;
	size_t n;
};
enum sent clickhouse__ask(struct clickhouse *clickhouse, const char *sql,
			  const struct clickhouse_ids *ids, struct http_reply *ret,
			  struct err *err);
struct row_reader clickhouse__rows(const struct http_reply *reply);

/* Has another statement done. */
enum sent clickhouse__run(struct clickhouse *clickhouse, const char *sql, struct err *err);

/* The salt of the database's ids; SENT_DENIED if its tables are of another version. */
enum sent clickhouse__salt(struct clickhouse *clickhouse, char ret[CLICKHOUSE_SALT_MAX],
			   struct err *err);

/* Makes database and tables of this server as far as they are missing. */
struct clickhouse_layout {
	const char *cluster; /* NULL: none */
	unsigned days;	     /* that samples are kept for; 0: for ever */
};
struct clickhouse_created {
	bool no_ttl;	 /* the server is too old to remove what is old */
	bool incomplete; /* other servers of the cluster have no tables yet */
};
enum sent clickhouse__create(struct clickhouse *clickhouse, const struct clickhouse_layout *layout,
			     struct clickhouse_created *ret, struct err *err);

#endif
