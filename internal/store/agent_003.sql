-- What renters do inside their leases, and what they added to them.

ALTER TABLE record ADD COLUMN inside BLOB; -- renter.Inside; none for records from before

CREATE TABLE extension (
    lease  BLOB NOT NULL REFERENCES record (lease),
    seq    INTEGER NOT NULL CHECK (seq > 0),
    body   BLOB NOT NULL CHECK (length(body) = 32),
    sealed BLOB NOT NULL,                   -- signed by both
    PRIMARY KEY (lease, seq)
) STRICT, WITHOUT ROWID;
