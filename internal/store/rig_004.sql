-- What rigs and renters signed about a lease beside its terms, its receipts and its outcome: payments, notices, refusals, disputes;
-- and when the rig's program ran last.

CREATE TABLE paper (
    number INTEGER PRIMARY KEY,             -- in the order in which papers were filed
    lease  BLOB NOT NULL REFERENCES lease (id),
    kind   TEXT NOT NULL,                   -- market.Kind
    seq    INTEGER NOT NULL CHECK (seq >= 0),
    body   BLOB NOT NULL CHECK (length(body) = 32),
    sealed BLOB NOT NULL,
    UNIQUE (lease, kind, seq)
) STRICT;

CREATE INDEX paper_kind ON paper (kind, number);

ALTER TABLE settings ADD COLUMN seen BLOB; -- host.Seen; none before the program has said
