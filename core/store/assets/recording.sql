-- Schema of a recording, version 8. docs/reference/recording.md explains it and has example queries.

CREATE TABLE meta (
	key TEXT PRIMARY KEY,
	value TEXT
);
CREATE TABLE kind ( -- of frames
	id INTEGER PRIMARY KEY,
	name TEXT,  -- 'kernel', 'native', 'inlined', then runtimes' names
	suffix TEXT -- '_[k]'
);
CREATE TABLE event ( -- what was measured; since version 3
	id INTEGER PRIMARY KEY,
	name TEXT, -- 'cpu', as the command line spells it
	unit TEXT  -- of values: 'samples', 'ns', 'bytes', 'count', or any other
);
CREATE TABLE process ( -- one row per program run in it: exec makes a new one
	id INTEGER PRIMARY KEY,
	pid INTEGER,
	parent_pid INTEGER,
	start_ticks INTEGER, -- field 22 of /proc/PID/stat
	name TEXT,
	command TEXT,
	cgroup TEXT, -- of version 2, as in /proc/PID/cgroup; since version 4
	container TEXT -- its id or name, as its cgroup is called; the same
);
CREATE TABLE thread ( -- one row per name that it had
	id INTEGER PRIMARY KEY,
	process INTEGER REFERENCES process,
	tid INTEGER,
	name TEXT
);
CREATE TABLE source ( -- where a runtime's frames came from, and why not from a better place
	process INTEGER REFERENCES process,
	runtime TEXT,
	version TEXT,
	source TEXT,
	reason TEXT
);
CREATE TABLE image (
	id INTEGER PRIMARY KEY,
	path TEXT,
	build_id TEXT -- hexadecimal
);
CREATE TABLE function (
	id INTEGER PRIMARY KEY,
	name TEXT,
	file TEXT
);
CREATE TABLE frame ( -- one place in code
	id INTEGER PRIMARY KEY,
	kind INTEGER REFERENCES kind,
	image INTEGER REFERENCES image, -- then the address is as in the file
	process INTEGER REFERENCES process, -- code of one process only
	address INTEGER, -- as a signed number: kernel addresses are negative
	loop INTEGER -- 1: code of an interpreter's loop, shown as the frames that it runs; since version 2
);
CREATE TABLE location ( -- names of a frame; several where functions are inlined
	frame INTEGER REFERENCES frame,
	level INTEGER, -- 0: innermost
	kind INTEGER REFERENCES kind,
	function INTEGER REFERENCES function,
	line INTEGER,
	PRIMARY KEY (frame, level)
) WITHOUT ROWID;
CREATE TABLE node ( -- a frame called by its parent's frame: a forest that all stacks share
	id INTEGER PRIMARY KEY, -- greater than parent
	parent INTEGER REFERENCES node, -- NULL: outermost
	frame INTEGER REFERENCES frame,
	offset INTEGER, -- of the frame's stack address below the base of the stack; NULL: none;
			-- -9223372036854775807: a runtime frame that waits on another stack
	evidence INTEGER -- of the step from the frame that it called: NULL: a rule; 1: a verified frame
			 -- pointer; 2: a stack copy; 3: inferred; since version 6
);
CREATE TABLE attribute ( -- of the service that a process belongs to, as published last; since version 8
	process INTEGER REFERENCES process,
	key TEXT, -- 'service.name', ...
	value TEXT,
	PRIMARY KEY (process, key)
) WITHOUT ROWID;
CREATE TABLE context ( -- a request; since version 8
	id INTEGER PRIMARY KEY,
	trace TEXT, -- hexadecimal; NULL: none
	span TEXT
);
CREATE TABLE label ( -- attributes of a request; since version 8
	context INTEGER REFERENCES context,
	key TEXT, -- 'http.route', ...
	value TEXT,
	PRIMARY KEY (context, key)
) WITHOUT ROWID;
CREATE TABLE sample (
	id INTEGER PRIMARY KEY,
	time_ns INTEGER, -- CLOCK_MONOTONIC
	event INTEGER REFERENCES event,
	thread INTEGER REFERENCES thread,
	cpu INTEGER,
	native INTEGER REFERENCES node, -- innermost; kernel frames are the innermost ones
	runtime INTEGER REFERENCES node, -- innermost
	flags INTEGER,
	value INTEGER, -- its own, in the event's unit; until version 6 what total is now, and until
		       -- version 2 called weight
	weight INTEGER, -- occurrences that it stands for, with itself; since version 7
	total INTEGER, -- the sum of their values; the same
	state INTEGER, -- enum thread_state of bpf/shared.h
	lock INTEGER, -- enum lock_state
	syscall INTEGER, -- the number of the system call that the thread is in, + 1
	object INTEGER, -- what it is about: the address of a futex or a lock, the bytes of block I/O, how many ns it was held, ...
	peer INTEGER, -- the other thread (its id) that it is about
	link INTEGER, -- samples with the same one belong together
	task INTEGER, -- the number that a runtime gives to what the thread works at (meta: task); 0: none; since version 5
	context INTEGER REFERENCES context -- the request that the thread worked for; since version 8
);
CREATE TABLE counter ( -- what was lost, and why
	name TEXT PRIMARY KEY,
	value INTEGER
);

CREATE VIEW name AS -- of every frame; with inlined functions one row per level
SELECT frame.id AS frame, ifnull(location.level, 0) AS level, kind.name AS kind,
       coalesce(function.name,
		'[' || ifnull(replace(image.path, rtrim(image.path, replace(image.path, '/', '')), ''),
			      CASE WHEN frame.kind = 0 THEN 'kernel' END) || printf('+0x%x]', frame.address),
		'[unknown]') AS function,
       function.file AS file, location.line AS line
  FROM frame
  LEFT JOIN location ON location.frame = frame.id
  LEFT JOIN function ON function.id = location.function
  LEFT JOIN image ON image.id = frame.image
  LEFT JOIN kind ON kind.id = ifnull(location.kind, frame.kind);

CREATE VIEW leaf AS -- every sample with its innermost native (or kernel) and runtime function
SELECT sample.id AS sample, sample.time_ns, event.name AS event, sample.value,
       sample.weight, sample.total, process.pid,
       thread.tid, thread.name AS thread, sample.cpu, a.kind, a.function AS native,
       b.function AS runtime
  FROM sample
  LEFT JOIN event ON event.id = sample.event
  LEFT JOIN thread ON thread.id = sample.thread
  LEFT JOIN process ON process.id = thread.process
  LEFT JOIN node AS n ON n.id = sample.native
  LEFT JOIN name AS a ON a.frame = n.frame AND a.level = 0
  LEFT JOIN node AS r ON r.id = sample.runtime
  LEFT JOIN name AS b ON b.frame = r.frame AND b.level = 0;

CREATE VIEW stack AS -- all frames of every stack, from its innermost node (leaf) outwards
WITH RECURSIVE walk(leaf, depth, node, parent, frame) AS (
	SELECT id, 0, id, parent, frame FROM node
	 WHERE id IN (SELECT native FROM sample UNION SELECT runtime FROM sample)
	 UNION ALL
	SELECT walk.leaf, walk.depth + 1, node.id, node.parent, node.frame
	  FROM walk JOIN node ON node.id = walk.parent
)
SELECT walk.leaf, walk.depth, walk.node, name.level, name.kind, name.function, name.file, name.line
  FROM walk JOIN name ON name.frame = walk.frame;
