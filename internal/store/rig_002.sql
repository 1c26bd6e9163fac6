-- Who is trusted, which cards are withheld, and what became of what jobs left behind.

ALTER TABLE settings ADD COLUMN trusted BLOB;  -- []host.Trusted; none: nobody
ALTER TABLE settings ADD COLUMN withheld BLOB; -- []host.Withheld; none: no card
ALTER TABLE lease ADD COLUMN outcome BLOB;     -- sealed; none before there is one
