-- What rigs say became of what jobs left behind.

ALTER TABLE record ADD COLUMN outcome BLOB; -- sealed; none before there is one
