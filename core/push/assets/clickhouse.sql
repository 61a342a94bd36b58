-- Tables of `braid push --init` in ClickHouse, from 18.16 on. docs/reference/push.md explains them and has
-- example queries. In a cluster @NAME is NAME_local, over which a Distributed table NAME lies.
-- @TTL COLUMN DAYS@ is nothing where the server has none (before 19.6), or none is wanted.

-- 'version' of this schema, and 'salt': what ids are made with. Nobody can choose names that give
-- another's id without knowing it.
CREATE TABLE IF NOT EXISTS @braid_meta (
	key String,
	value String
) ENGINE = ReplacingMergeTree ORDER BY (key, value);

-- One attempt to send a range of a recording's samples: a row before the samples, with committed 0,
-- and one after them, with 1.
CREATE TABLE IF NOT EXISTS @braid_loads (
	load UInt64,        -- random
	recording String,   -- hash of the file
	first_sample UInt64, -- number of the first of its samples, from 0
	samples UInt64,     -- how many
	committed UInt8,
	earliest DateTime,  -- time of the first of them, and of the last
	latest DateTime,
	service String,
	host String,
	target String,      -- what was recorded, for people
	sent DateTime,      -- when this was written
	lost_names Array(String), -- of the recording: what was lost, and how often
	lost_counts Array(UInt64)
) ENGINE = MergeTree PARTITION BY toYYYYMM(earliest) ORDER BY (recording, first_sample, load)@TTL earliest 31@
SETTINGS index_granularity = 1024;

-- Who sampled what: a thread and an event.
CREATE TABLE IF NOT EXISTS @braid_series (
	series UInt64,      -- hash of the columns up to hz
	service String,
	host String,
	container String,
	pid UInt32,
	process String,
	tid UInt32,
	thread String,
	event String,
	unit String,        -- of values: samples, ns, bytes, count, ...
	hz Float64,         -- of a timer's samples; 0: it is none
	seen Date           -- last sent
) ENGINE = ReplacingMergeTree(seen) PARTITION BY toYYYYMM(seen) ORDER BY series@TTL seen 31@
SETTINGS index_granularity = 1024;

-- Those of a load that is in braid_void do not count.
CREATE TABLE IF NOT EXISTS @braid_samples (
	time DateTime,
	ns UInt32,          -- of that second
	load UInt64,
	series UInt64,
	stack UInt64,
	value UInt64,       -- its own, in the series' unit
	weight UInt64,      -- occurrences that it stands for, with itself
	total UInt64        -- the sum of their values
) ENGINE = MergeTree PARTITION BY toYYYYMMDD(time)
ORDER BY (toStartOfHour(time), series, stack)@TTL time 0@;

-- What a thread did: all frames, and whether it ran or waited.
CREATE TABLE IF NOT EXISTS @braid_stacks (
	stack UInt64,       -- hash of the columns up to places
	state UInt8,        -- enum thread_state of braid's bpf/shared.h: 1 running, ...
	lock UInt8,         -- enum lock_state
	syscall UInt16,     -- number of the system call that it was in, + 1; 0: none
	age UInt8,          -- class of how long it was held, of what is outstanding; 255: no stack,
			    -- but what followed the last samples of an event
	natives UInt16,     -- how many of the frames are native and the kernel's
	frames Array(UInt64),  -- innermost first: those, then those of runtimes
	places Array(UInt16),  -- of each where it lies on the stack, by rank, 1 innermost; 0: it does
			       -- not, 65535: on another one; + 32768: the frame is inferred
	seen Date
) ENGINE = ReplacingMergeTree(seen) PARTITION BY toYYYYMM(seen) ORDER BY stack@TTL seen 31@
SETTINGS index_granularity = 256;

CREATE TABLE IF NOT EXISTS @braid_frames (
	frame UInt64,       -- hash of the columns up to lines
	kind String,        -- kernel, native, python, ...
	suffix String,      -- _[k], _[n], ...
	image String,       -- file of native code, without its directory
	address UInt64,     -- in it, of what has no name; else 0
	flags UInt8,        -- 1: code of an interpreter's loop; 2: of no file
	kinds Array(String),   -- its names, innermost first: several where functions are inlined
	suffixes Array(String),
	functions Array(String),
	files Array(String),
	lines Array(UInt32),
	seen Date
) ENGINE = ReplacingMergeTree(seen) PARTITION BY toYYYYMM(seen) ORDER BY frame@TTL seen 31@
SETTINGS index_granularity = 256;
