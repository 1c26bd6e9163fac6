-- What both signed so that a lease may use more.

CREATE TABLE extension (
    lease  BLOB NOT NULL REFERENCES lease (id),
    seq    INTEGER NOT NULL CHECK (seq > 0),
    body   BLOB NOT NULL CHECK (length(body) = 32),
    sealed BLOB NOT NULL,
    PRIMARY KEY (lease, seq)
) STRICT, WITHOUT ROWID;
