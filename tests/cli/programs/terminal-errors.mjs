// The command sees a terminal as its standard error.
process.stderr.isTTY = true;
