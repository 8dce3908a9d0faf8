#!/usr/bin/env node
/** The process: flags of the engine, then the command line. */
import "./V8.ts"

// Loaded behind the flags. A bundle evaluates what it imports statically before them, and V8 then allocates for long what is made for
// every call.
void import("./commands/Main.ts")
