-- An agent's database. Signed records are kept as they travelled; states as market.EncodeState writes them.

CREATE TABLE instance (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  BLOB NOT NULL CHECK (length(id) = 16)
) STRICT;

CREATE TABLE record (
    number  INTEGER PRIMARY KEY,            -- in the order in which bids were made
    bid     BLOB NOT NULL UNIQUE CHECK (length(bid) = 32),
    lease   BLOB UNIQUE CHECK (length(lease) = 32), -- none before the grant
    job     TEXT NOT NULL,                  -- the job's state
    created INTEGER NOT NULL,               -- wall time of the bid, Unix milliseconds
    terms   BLOB,                           -- market.Terms, with the lease
    sealed  BLOB,                           -- the terms as they were signed
    offer   BLOB NOT NULL,
    sealed_bid BLOB NOT NULL,
    task    BLOB NOT NULL,                  -- market.Job
    env     BLOB,                           -- market.Env, until the job has ended
    rig_name TEXT NOT NULL,
    model   TEXT NOT NULL,
    image   TEXT NOT NULL,
    state   BLOB NOT NULL,                  -- renter.State
    head_seq INTEGER NOT NULL,              -- of the newest receipt that both signed; never falls
    head    BLOB NOT NULL                   -- market.Head
) STRICT;

CREATE TABLE receipt (
    lease  BLOB NOT NULL REFERENCES record (lease),
    seq    INTEGER NOT NULL CHECK (seq > 0),
    body   BLOB NOT NULL CHECK (length(body) = 32),
    sealed BLOB NOT NULL,
    PRIMARY KEY (lease, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE reject (
    lease  BLOB NOT NULL REFERENCES record (lease),
    seq    INTEGER NOT NULL CHECK (seq > 0),
    sealed BLOB NOT NULL,
    PRIMARY KEY (lease, seq)
) STRICT, WITHOUT ROWID;
