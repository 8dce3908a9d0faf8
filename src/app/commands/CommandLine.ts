/** How the command line speaks: plain text where nobody sees colors, and what is wrong with a command in a line. */
import { Effect } from "effect"
import type { Console } from "effect"

// oxlint-disable-next-line no-control-regex -- it is what a terminal takes for a color
const colors = /\u001b\[[0-9;]*m/g

/** Whether escape sequences would reach somebody who sees colors (no-color.org). */
const shows = (stream: NodeJS.WriteStream): boolean =>
  stream.isTTY && (process.env.NO_COLOR ?? "") === "" && process.env.TERM !== "dumb"

/** Takes the colors out of what is printed to where they are not wanted. */
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

/** The flags of a command line, without their values. */
export const flags = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words.flatMap((word) => /^--[a-z][a-z-]*/i.exec(word)?.[0].toLowerCase() ?? [])

/** Commands by their names, each with its own. */
export interface Commands {
  readonly [name: string]: Commands
}

/** The command that was meant, as far as its words name one; a word that names none, where one was wanted; and what there is. */
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

/** Columns, each as wide as its widest text; the last one is left as it is. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? "").length)))
  return rows
    .map((row) => row.map((text, i) => (i === row.length - 1 ? text : text.padEnd(widths[i]!))).join("  "))
    .join("\n")
}

/** What people have chosen, as it may be shown in a terminal: on one line, and without what steers one. */
export const printable = (text: string, max = 200): string =>
  // oxlint-disable-next-line no-control-regex -- exactly those
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, " ").slice(0, max)
