-- What the user calls others, and whom the user has blocked.

CREATE TABLE given_name (
    key  BLOB PRIMARY KEY CHECK (length(key) = 32), -- of an owner or a rig
    name TEXT NOT NULL UNIQUE,
    at   INTEGER NOT NULL                           -- Unix milliseconds
) STRICT, WITHOUT ROWID;

CREATE TABLE blocked (
    key  BLOB PRIMARY KEY CHECK (length(key) = 32),
    why  TEXT NOT NULL,
    till INTEGER NOT NULL                           -- Unix milliseconds; 0 is until it is lifted
) STRICT, WITHOUT ROWID;

-- Rigs of which the agent has heard, and their newest offers: at the next start these are shown at once, and the rigs asked first. Of
-- most of them only the time is kept at which they were first seen.
CREATE TABLE rig_seen (
    rig        BLOB PRIMARY KEY CHECK (length(rig) = 32),
    first_seen INTEGER NOT NULL,                    -- Unix milliseconds, as all times here; 0 is never
    heard      INTEGER NOT NULL,                    -- its last answer
    used       INTEGER NOT NULL,                    -- the last word of it or about it
    failures   INTEGER NOT NULL,                    -- questions without an answer since
    marked     INTEGER NOT NULL,                    -- it contradicted itself and is left out until then
    addrs      BLOB,                                -- []string
    offers     BLOB                                 -- [][]byte, sealed
) STRICT, WITHOUT ROWID;

CREATE INDEX rig_seen_used ON rig_seen (used);
