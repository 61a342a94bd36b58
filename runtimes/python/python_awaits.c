// SPDX-License-Identifier: GPL-2.0-or-later
/* The innermost coroutine of a waiting task is usually one of asyncio's own, and its function names
 * the reason. A method's first variable is the object: a lock, a queue, a reader of a stream. Other
 * coroutines await a future or a task directly, so that the reason is the kind of the future. */
#include "runtimes/python/python_awaits.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

enum subject {
	SUBJECT_WORD,	   /* the rule's word */
	SUBJECT_SELF,	   /* class of the function's first variable */
	SUBJECT_TRANSPORT, /* kind of the transport of the function's first variable */
};

/* Functions of CPython's Lib/asyncio. `function`: pattern of co_name, which is the last part of
 * co_qualname. Compared with 3.8 to 3.15: tests/live/tasks_python.t. */
static const struct rule {
	const char *function, *file;
	enum subject subject;
	const char *word;
} rules[] = {
	/* `return await future` after loop.call_later() */
	{ "sleep", "tasks.py", SUBJECT_WORD, "sleep" },
	/* `await waiter` of wait(); the same in wait_for() up to 3.11 */
	{ "_wait", "tasks.py", SUBJECT_WORD, "wait" },
	{ "wait_for", "tasks.py", SUBJECT_WORD, "wait_for" },
	/* Lock.acquire, Event.wait, Condition.wait, Semaphore.acquire: `await fut` */
	{ "*", "locks.py", SUBJECT_SELF, "lock" },
	/* Queue.get: `await getter`; put: `await putter`. Queue.join is Event.wait. */
	{ "*", "queues.py", SUBJECT_SELF, "Queue" },
	/* StreamReader: `await self._waiter` */
	{ "_wait_for_data", "streams.py", SUBJECT_TRANSPORT, "stream" },
	/* FlowControlMixin, for StreamWriter.drain: `await waiter` */
	{ "_drain_helper", "streams.py", SUBJECT_WORD, "drain" },
	/* BaseSelectorEventLoop: `return await fut` */
	{ "sock_*", "selector_events.py", SUBJECT_WORD, "socket" },
	/* TaskGroup: `await self._on_completed_fut` */
	{ "*", "taskgroups.py", SUBJECT_WORD, "TaskGroup" },
	/* BaseSubprocessTransport._wait: `return await waiter` */
	{ "_wait", "base_subprocess.py", SUBJECT_WORD, "process" },
	/* Server: `await self._serving_forever_fut`, `await waiter` */
	{ "serve_forever", "base_events.py", SUBJECT_WORD, "Server" },
	{ "wait_closed", "base_events.py", SUBJECT_WORD, "Server" },
};

/* Classes of Lib/asyncio/selector_events.py, sslproto.py, unix_events.py, and of uvloop (loop.pyx):
 * _SelectorSocketTransport, _SSLProtocolTransport, _UnixReadPipeTransport,
 * uvloop.loop.TCPTransport, UnixTransport, ReadUnixTransport, SSLProtocol's transport. The first
 * match counts. */
static const struct word {
	const char *part, *word;
} transports[] = {
	{ "SSL", "TLS" },	 { "Pipe", "pipe" },	 { "ReadUnix", "pipe" },
	{ "WriteUnix", "pipe" }, { "Socket", "socket" }, { "TCP", "socket" },
	{ "Unix", "socket" },
};

/* Classes of futures: _GatheringFuture of Lib/asyncio/tasks.py; _SyncSocketReaderFuture and
 * _SyncSocketWriterFuture of uvloop, for loop.sock_recv() and the like. */
static const struct word futures[] = {
	{ "_GatheringFuture", "gather" },
	{ "_SyncSocket", "socket" },
};

#define TYPE_NAME  24
#define CALLBACK0  24 /* first callback of a FutureObj: fut_callback0, Modules/_asynciomodule.c */
#define WORD	   8
#define PAGE_BYTES 4096

/* --- texts --- */

/* Puts the name of the object's class into @buf, without its module. False: unreadable. */
static bool class_of(struct python_task_reader *reader, uint64_t object,
		     char buf[PYTHON_REASON_BYTES])
{
	uint64_t type = object ? python_object__type(&reader->reader, object) : 0;
	uint64_t at = type ? python_object__field(&reader->reader, type, TYPE_NAME) : 0;
	char name[PYTHON_REASON_BYTES] = {};
	const char *dot;

	if (!at || !python_reader__bytes(&reader->reader, at, name,
					 min_of(sizeof(name) - 1, PAGE_BYTES - at % PAGE_BYTES)))
		return false;
	dot = strrchr(name, '.');
	snprintf(buf, PYTHON_REASON_BYTES, "%s", dot ? dot + 1 : name);
	return buf[0];
}

static char *text_of_code(struct python_task_reader *reader, uint64_t frame, unsigned offset)
{
	uint64_t code = python_frame__value(&reader->reader,
					    frame + reader->reader.version->offsets.frame_code, 0);

	return python_str__dup(&reader->reader, python_reader__at(&reader->reader, code + offset));
}

/* --- rules --- */

static const struct rule *find_rule(struct python_task_reader *reader, uint64_t frame)
{
	const struct python_offsets *offsets = &reader->reader.version->offsets;
	char *file = text_of_code(reader, frame, offsets->code_file), *function = NULL;
	const char *base = file ? strstr(file, "/asyncio/") : NULL, *dot;
	const struct rule *ret = NULL;

	if (base)
		function = text_of_code(reader, frame, offsets->code_name);
	if (function) {
		dot = strrchr(function, '.');
		for (size_t i = 0; !ret && i < ARRAY_SIZE(rules); i++)
			if (!strcmp(base + strlen("/asyncio/"), rules[i].file) &&
			    !fnmatch(rules[i].function, dot ? dot + 1 : function, 0))
				ret = &rules[i];
	}
	free(function);
	free(file);
	return ret;
}

/* Returns the object in the frame's first variable; 0: none. */
static uint64_t self_of(struct python_task_reader *reader, uint64_t frame)
{
	const struct python_layout *layout = reader->layout;

	return python_frame__value(&reader->reader, frame + (layout->locals ?: layout->stack), 0);
}

static const char *find_word(const struct word *words, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(name, words[i].part))
			return words[i].word;
	return NULL;
}

static const char *transport_of(struct python_task_reader *reader, uint64_t stream)
{
	uint64_t transport = python_object__get(&reader->reader, stream, "_transport");
	char name[PYTHON_REASON_BYTES];

	return class_of(reader, transport, name)
		       ? find_word(transports, ARRAY_SIZE(transports), name)
		       : NULL;
}

static void apply(struct python_task_reader *reader, const struct rule *rule, uint64_t frame,
		  char buf[PYTHON_REASON_BYTES])
{
	const char *word = NULL;

	if (rule->subject == SUBJECT_SELF && class_of(reader, self_of(reader, frame), buf))
		return;
	if (rule->subject == SUBJECT_TRANSPORT)
		word = transport_of(reader, self_of(reader, frame));
	snprintf(buf, PYTHON_REASON_BYTES, "%s", word ?: rule->word);
}

/* --- futures --- */

/* Returns true if the future has the result of a concurrent.futures.Future, as those of
 * loop.run_in_executor() do: _chain_future() of Lib/asyncio/futures.py adds the first callback. */
static bool is_of_executor(struct python_task_reader *reader, uint64_t future)
{
	uint64_t callback = python_object__field(&reader->reader, future, CALLBACK0);

	return callback && python_object__is(&reader->reader, callback, "function") &&
	       python_code__is(&reader->reader,
			       python_object__field(&reader->reader, callback,
						    reader->layout->function_code),
			       "_call_check_cancel", "_chain_future.<locals>._call_check_cancel",
			       "/asyncio/futures.py");
}

static void describe_future(struct python_task_reader *reader, uint64_t future,
			    char buf[PYTHON_REASON_BYTES])
{
	char name[PYTHON_REASON_BYTES];
	const char *word = NULL;

	if (python_task__is_task(reader, future))
		word = "task";
	else if (python_task__kinds(reader, future) & PYTHON_C_FUTURE &&
		 is_of_executor(reader, future))
		word = "executor";
	else if (class_of(reader, future, name))
		word = find_word(futures, ARRAY_SIZE(futures), name) ?: name;
	snprintf(buf, PYTHON_REASON_BYTES, "%s", word ?: "");
}

void python_awaits__reason(struct python_task_reader *reader, const struct python_task *task,
			   const struct python_coroutines *chain, char buf[PYTHON_REASON_BYTES])
{
	uint64_t innermost = chain->frames[chain->n - 1];
	const struct rule *rule = find_rule(reader, innermost);

	buf[0] = '\0';
	if (rule)
		apply(reader, rule, innermost, buf);
	else if (task->future)
		describe_future(reader, task->future, buf);
}
