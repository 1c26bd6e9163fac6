-- A rig's database. Signed records are kept as they travelled; states as market.EncodeState writes them.

CREATE TABLE instance (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  BLOB NOT NULL CHECK (length(id) = 16)
) STRICT;

CREATE TABLE lease (
    number  INTEGER PRIMARY KEY,            -- in the order in which leases were granted
    id      BLOB NOT NULL UNIQUE CHECK (length(id) = 32), -- the hash of the terms' body
    bid     BLOB NOT NULL UNIQUE CHECK (length(bid) = 32),
    job     TEXT NOT NULL,                  -- the job's state
    closed  INTEGER NOT NULL CHECK (closed IN (0, 1)),
    created INTEGER NOT NULL,               -- wall time of the grant, Unix milliseconds
    state   BLOB NOT NULL,                  -- market.Lease
    sealed  BLOB NOT NULL,                  -- the terms
    offer   BLOB NOT NULL,
    sealed_bid BLOB NOT NULL,
    task    BLOB NOT NULL,                  -- market.Job
    env     BLOB,                           -- market.Env, until the job has ended
    image   BLOB NOT NULL                   -- market.ImageName
) STRICT;

CREATE INDEX lease_open ON lease (number) WHERE closed = 0;

CREATE TABLE receipt (
    lease  BLOB NOT NULL REFERENCES lease (id),
    seq    INTEGER NOT NULL CHECK (seq > 0),
    body   BLOB NOT NULL CHECK (length(body) = 32),
    sealed BLOB NOT NULL,
    agreed INTEGER NOT NULL CHECK (agreed IN (0, 1)),
    PRIMARY KEY (lease, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    paused    INTEGER NOT NULL CHECK (paused IN (0, 1)),
    draining  INTEGER NOT NULL CHECK (draining IN (0, 1)),
    prices    BLOB,                         -- market.Prices; none: as configured
    offer_seq INTEGER NOT NULL              -- never falls
) STRICT;
