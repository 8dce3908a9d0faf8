/** Renders a command's help: its full name, its purpose, and a line for each subcommand and option. */
import { CliConfig } from "@effect/cli"
import type { HelpDoc, Span } from "@effect/cli"
import * as CommandDescriptor from "@effect/cli/CommandDescriptor"
import * as CommandLine from "./CommandLine.ts"

type Descriptor = CommandDescriptor.Command<unknown>

/** A command and its subcommands by name, in the order of the help. */
export interface Entry {
  readonly descriptor: Descriptor
  readonly below: Entries
}
export interface Entries {
  readonly [name: string]: Entry
}

const textOf = (span: Span.Span): string => {
  switch (span._tag) {
    case "Text":
    case "URI":
      return span.value
    case "Sequence":
      return textOf(span.left) + textOf(span.right)
    default:
      return textOf(span.value)
  }
}

const partsOf = (doc: HelpDoc.HelpDoc): ReadonlyArray<HelpDoc.HelpDoc> =>
  doc._tag === "Sequence" ? [...partsOf(doc.left), ...partsOf(doc.right)] : [doc]

const paragraphsOf = (doc: HelpDoc.HelpDoc): ReadonlyArray<string> =>
  partsOf(doc).flatMap((part) => (part._tag === "Paragraph" ? [textOf(part.value)] : []))

interface Term {
  /** The option or argument as the help shows it, such as `--limit text` or `<FILE.csv>`. */
  readonly term: string
  readonly meaning: string
  readonly isNeeded: boolean
}

const optional = "This setting is optional."
const repeated = /^This option (may|must) be repeated/

/** Reads an option or argument. Omits the first paragraph, because it only repeats the type that the term shows. */
const termOf = ([span, doc]: readonly [Span.Span, HelpDoc.HelpDoc]): Term => {
  const paragraphs = paragraphsOf(doc).slice(1)
  return {
    term: textOf(span).trim(),
    meaning: paragraphs.filter((text) => text !== optional && !repeated.test(text)).join("; "),
    isNeeded: !paragraphs.includes(optional)
  }
}

const config = { ...CliConfig.defaultConfig, showBuiltIns: false }

const helpOf = (command: Descriptor) => partsOf(CommandDescriptor.getHelp(command, config))

/** Reads a command's purpose from the first paragraph of its description. */
const purposeOf = (command: Descriptor): string =>
  helpOf(command).flatMap((part) => (part._tag === "Paragraph" ? [textOf(part.value)] : []))[0] ?? ""

/** Returns the command's own arguments and options. Recognizes them by a dash or bracket in the name. */
const termsOf = (command: Descriptor): ReadonlyArray<Term> =>
  helpOf(command)
    .flatMap((part) => (part._tag === "DescriptionList" ? part.definitions : []))
    .map(termOf)
    .filter(({ term }) => /^[-<(]/.test(term))

const indented = (rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  CommandLine.table(rows.map(([first, ...rest]) => [`  ${first}`, ...rest]))

const usageOf = (name: string, terms: ReadonlyArray<Term>): string => {
  const options = terms.some(({ isNeeded }) => !isNeeded) ? ["[options]"] : []
  return [name, ...terms.filter(({ isNeeded }) => isNeeded).map(({ term }) => term), ...options].join(" ")
}

const heading = (text: string): string => `\u001b[1m${text}\u001b[0m`

export const manual = (name: string, { below, descriptor }: Entry): string => {
  const terms = termsOf(descriptor)
  const subcommands = Object.entries(below)
  const blocks = [purposeOf(descriptor)]
  if (subcommands.length === 0 || terms.length > 0) blocks.unshift(heading(usageOf(name, terms)))
  if (terms.length > 0) blocks.push(indented(terms.map(({ meaning, term }) => [term, meaning])))
  if (subcommands.length > 0)
    blocks.push(
      heading("COMMANDS"),
      indented(subcommands.map(([word, entry]) => [`${name} ${word}`, purposeOf(entry.descriptor)])),
      `To list the options of a command, run ${name} COMMAND --help.`
    )
  return blocks.join("\n\n")
}
