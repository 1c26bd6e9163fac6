-- What rigs and renters signed about a lease beside its terms and its receipts, and what the user chose.

CREATE TABLE paper (
    number INTEGER PRIMARY KEY,             -- in the order in which papers were filed
    lease  BLOB NOT NULL REFERENCES record (lease),
    kind   TEXT NOT NULL,                   -- market.Kind
    seq    INTEGER NOT NULL CHECK (seq >= 0),
    body   BLOB NOT NULL CHECK (length(body) = 32),
    sealed BLOB NOT NULL,
    UNIQUE (lease, kind, seq)
) STRICT;

CREATE INDEX paper_kind ON paper (kind, number);

CREATE TABLE settings (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    state BLOB NOT NULL                     -- renter.Settings
) STRICT;
