/** Helpers for the terminal: colors, tables, safe strings and the lookup of command names. */
import { Effect } from "effect"
import type { Console } from "effect"

// oxlint-disable-next-line no-control-regex -- the escape sequences of terminal colors
const colors = /\u001b\[[0-9;]*m/g

/** Returns whether the stream displays colors (no-color.org). */
const shows = (stream: NodeJS.WriteStream): boolean =>
  stream.isTTY && (process.env.NO_COLOR ?? "") === "" && process.env.TERM !== "dumb"

/** Removes colors from output to streams that do not display them. */
export const plainly = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.consoleWith((console) => {
    const plain =
      (stream: NodeJS.WriteStream, print: Console.Console["log"]): Console.Console["log"] =>
      (...args) =>
        print(...args.map((arg) => (typeof arg === "string" && !shows(stream) ? arg.replace(colors, "") : arg)))
    return Effect.withConsole(effect, {
      ...console,
      log: plain(process.stdout, console.log),
      error: plain(process.stderr, console.error)
    })
  })

/** Returns the flags of a command line, without their values. */
export const flags = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words.flatMap((word) => /^--[a-z][a-z-]*/i.exec(word)?.[0].toLowerCase() ?? [])

/** Maps command names to their subcommands. */
export interface Commands {
  readonly [name: string]: Commands
}

/**
 * Finds the longest command name at the start of the words. `known` lists its subcommands. `unknown` is the next word if this word should be a
 * subcommand but is not.
 */
export const meant = (
  commands: Commands,
  words: ReadonlyArray<string>
): { readonly name: string; readonly unknown: string | undefined; readonly known: ReadonlyArray<string> } => {
  const found = ["tollgate"]
  let at = commands
  for (const word of words) {
    const known = Object.keys(at)
    if (known.length === 0 || word.startsWith("-")) break
    if (!known.includes(word)) return { name: found.join(" "), unknown: word, known }
    found.push(word)
    at = at[word]!
  }
  return { name: found.join(" "), unknown: undefined, known: Object.keys(at) }
}

/** Aligns rows in columns. The last column is not padded. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? "").length)))
  return rows
    .map((row) => row.map((text, i) => (i === row.length - 1 ? text : text.padEnd(widths[i]!))).join("  "))
    .join("\n")
}

/** Removes line breaks and control characters, so that a user's text is safe to print on a terminal. */
export const printable = (text: string, max = 200): string =>
  // oxlint-disable-next-line no-control-regex -- the expression removes control characters
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, " ").slice(0, max)
