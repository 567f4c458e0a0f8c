// The command sees a terminal as its standard input.
process.stdin.isTTY = true;
