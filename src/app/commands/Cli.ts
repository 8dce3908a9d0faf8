/** The command line: defines all commands, their names and their help. */
import { CliConfig, Command } from "@effect/cli"
import * as CommandDescriptor from "@effect/cli/CommandDescriptor"
import * as ValidationError from "@effect/cli/ValidationError"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeTerminal from "@effect/platform-node/NodeTerminal"
import { Console, Effect, Layer } from "effect"
import * as Allowance from "./Allowance.ts"
import * as Backup from "./Backup.ts"
import * as Check from "./Check.ts"
import * as Doctor from "./Doctor.ts"
import * as Client from "./Client.ts"
import * as CommandLine from "./CommandLine.ts"
import * as Grant from "./Grant.ts"
import * as TakeBack from "./TakeBack.ts"
import * as Health from "./Health.ts"
import * as Help from "./Help.ts"
import * as Invite from "./Invite.ts"
import * as Key from "./Key.ts"
import { manual } from "./Manual.ts"
import type { Entries, Entry } from "./Manual.ts"
import * as Migrate from "./Migrate.ts"
import * as Models from "./Models.ts"
import * as Operator from "./Operator.ts"
import * as OperatorKeys from "./OperatorKeys.ts"
import * as Owed from "./Owed.ts"
import * as People from "./People.ts"
import * as Purchase from "./Purchase.ts"
import * as Receipt from "./Receipt.ts"
import * as Reconcile from "./Reconcile.ts"
import * as Reseal from "./Reseal.ts"
import * as Restore from "./Restore.ts"
import * as RotateKeys from "./RotateKeys.ts"
import * as Quickstart from "./Quickstart.ts"
import * as Serve from "./ServeCommand.ts"
import * as Tenants from "./Tenants.ts"
import * as Verify from "./Verify.ts"
import * as Voucher from "./Voucher.ts"
import { refuse, reported } from "./Report.ts"
import { variables } from "../Environment.ts"
import { version } from "../../kernel/Version.ts"

const commands = [
  Serve.command,
  Quickstart.command,
  Check.command,
  Doctor.command,
  Grant.command,
  TakeBack.command,
  Purchase.command,
  Allowance.command,
  Voucher.command,
  Owed.command,
  People.command,
  Tenants.command,
  Invite.command,
  Operator.command,
  Client.command,
  Key.command,
  RotateKeys.command,
  Verify.command,
  Reconcile.command,
  Receipt.command,
  Backup.command,
  Restore.command,
  Reseal.command,
  Migrate.command,
  Models.command,
  Health.command,
  Help.command
] as const

const tollgate = Command.make("tollgate").pipe(
  Command.withDescription(
    "Meter access to AI models: identify the caller, check the balance, and charge the exact cost"
  ),
  Command.withSubcommands(commands)
)

const entriesOf = (
  some: ReadonlyArray<{ readonly descriptor: CommandDescriptor.Command<unknown> }>,
  below: Readonly<Record<string, Entries>> = {}
): Entries =>
  Object.fromEntries(
    some.flatMap(({ descriptor }) =>
      [...CommandDescriptor.getNames(descriptor)].map((name) => [name, { descriptor, below: below[name] ?? {} }])
    )
  )

const entries = entriesOf(commands, {
  allowance: entriesOf(Allowance.subcommands),
  receipt: entriesOf(Receipt.subcommands),
  voucher: entriesOf(Voucher.subcommands),
  operator: entriesOf(Operator.subcommands, { keys: entriesOf(OperatorKeys.subcommands) }),
  people: entriesOf(People.subcommands),
  tenants: entriesOf(Tenants.subcommands),
  client: entriesOf(Client.subcommands),
  key: entriesOf(Key.subcommands)
})

const namesOf = (some: Entries): CommandLine.Commands =>
  Object.fromEntries(Object.entries(some).map(([name, { below }]) => [name, namesOf(below)]))

const allNames = namesOf(entries)

/** The text below the list of commands. */
const environmentHelp = [
  "\u001b[1mENVIRONMENT\u001b[0m",
  CommandLine.table(
    variables.map(([name, preset, meaning]) => [`  ${name}`, preset === "" ? meaning : `${meaning} (${preset})`])
  ),
  "To list the guides, run tollgate help. To get started, run tollgate help first-hour."
].join("\n\n")

const cli = Command.run(tollgate, { name: "Tollgate", version })

const root: Entry = { descriptor: tollgate.descriptor, below: entries }

const helpOf = (name: string): string => {
  const entry = name
    .split(" ")
    .slice(1)
    .reduce((at, word) => at.below[word] ?? at, root)
  return entry === root
    ? [`Tollgate ${version}`, manual(name, root), environmentHelp].join("\n\n")
    : manual(name, entry)
}

const asksForHelp = (words: ReadonlyArray<string>): boolean =>
  words.length === 0 || words.includes("--help") || words.includes("-h")

const platform = Layer.mergeAll(
  CliConfig.layer({ showBuiltIns: false }),
  NodeFileSystem.layer,
  NodePath.layer,
  NodeTerminal.layer
)

/** Replaces `serve --quickstart` with `quickstart`, because `npm start -- --quickstart` runs `serve` with that option. */
const startedQuickly = (argv: ReadonlyArray<string>): ReadonlyArray<string> =>
  argv[2] === "serve" && argv.includes("--quickstart")
    ? [...argv.slice(0, 2), "quickstart", ...argv.slice(3).filter((word) => word !== "--quickstart")]
    : argv

const repeatable: ReadonlySet<string> = new Set(["--redirect-uri", "--tag", "--key"])

export const run = (given: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const argv = startedQuickly(given)
    const words = argv.slice(2)
    const twice = CommandLine.flags(words).find((flag, i, all) => all.indexOf(flag) !== i && !repeatable.has(flag))
    if (twice !== undefined) return yield* refuse(`${twice} was given more than once`)
    const { known, name, unknown } = CommandLine.meant(allNames, words)
    if (unknown !== undefined)
      return yield* refuse(`${name} has no command ${unknown}; its commands are ${known.join(", ")}`)
    if (asksForHelp(words)) return yield* Console.log(helpOf(name))
    yield* cli(argv).pipe(
      // The library has already printed the error.
      Effect.catchIf(ValidationError.isValidationError, () => refuse(`see ${name} --help`)),
      Effect.provide(platform)
    )
  }).pipe(reported)
