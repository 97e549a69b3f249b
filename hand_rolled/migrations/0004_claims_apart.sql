-- Claims of different workers share no row. What a claim has to know of the limits stands in its
-- worker's own row, which it locks anyway; who changes the limits changes it in all of them.

ALTER TABLE workers ADD COLUMN counted boolean NOT NULL DEFAULT false;  -- as in limits
UPDATE workers SET counted = (SELECT counted FROM limits);
