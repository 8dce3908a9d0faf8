/** The command line: all commands, their names and help. */
import { CliConfig, Command, HelpDoc } from "@effect/cli"
import * as CommandDescriptor from "@effect/cli/CommandDescriptor"
import * as ValidationError from "@effect/cli/ValidationError"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as NodeTerminal from "@effect/platform-node/NodeTerminal"
import { Effect, Layer } from "effect"
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
import * as Migrate from "./Migrate.ts"
import * as Models from "./Models.ts"
import * as Operator from "./Operator.ts"
import * as OperatorKeys from "./OperatorKeys.ts"
import * as Owed from "./Owed.ts"
import * as People from "./People.ts"
import * as Purchase from "./Purchase.ts"
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
  Backup.command,
  Restore.command,
  Reseal.command,
  Migrate.command,
  Models.command,
  Health.command,
  Help.command
] as const

const tollgate = Command.make("tollgate").pipe(
  Command.withDescription("Metered access to AI models: who calls, whether they can pay, what the call cost"),
  Command.withSubcommands(commands)
)

const namesOf = (
  some: ReadonlyArray<{ readonly descriptor: CommandDescriptor.Command<unknown> }>,
  below: CommandLine.Commands = {}
): CommandLine.Commands =>
  Object.fromEntries(
    some.flatMap(({ descriptor }) =>
      [...CommandDescriptor.getNames(descriptor)].map((name) => [name, below[name] ?? {}])
    )
  )

const allNames = namesOf(commands, {
  allowance: namesOf(Allowance.subcommands),
  voucher: namesOf(Voucher.subcommands),
  operator: namesOf(Operator.subcommands, { keys: namesOf(OperatorKeys.subcommands) }),
  people: namesOf(People.subcommands),
  tenants: namesOf(Tenants.subcommands),
  client: namesOf(Client.subcommands),
  key: namesOf(Key.subcommands)
})

/** Shown below every help text. */
const environmentHelp = HelpDoc.blocks([
  HelpDoc.h1("ENVIRONMENT"),
  HelpDoc.p(
    CommandLine.table(
      variables.map(([name, preset, meaning]) => [name, preset === "" ? meaning : `${meaning} (${preset})`])
    )
  ),
  HelpDoc.p("tollgate COMMAND --help lists a command's options. tollgate help lists the guides.")
])

const cli = Command.run(tollgate, { name: "Tollgate", version, footer: environmentHelp })

/** Platform services of the commands. */
const platform = Layer.mergeAll(
  CliConfig.layer({ showBuiltIns: false }),
  NodeFileSystem.layer,
  NodePath.layer,
  NodeTerminal.layer
)

/** `npm start` runs `serve`, so that `npm start -- --quickstart` is `serve --quickstart`: the same as `quickstart`. */
const startedQuickly = (argv: ReadonlyArray<string>): ReadonlyArray<string> =>
  argv[2] === "serve" && argv.includes("--quickstart")
    ? [...argv.slice(0, 2), "quickstart", ...argv.slice(3).filter((word) => word !== "--quickstart")]
    : argv

/** Runs the command of a command line. */
export const run = (given: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const argv = startedQuickly(given)
    const words = argv.slice(2)
    const twice = CommandLine.flags(words).find((flag, i, all) => all.indexOf(flag) !== i && flag !== "--redirect-uri")
    if (twice !== undefined) return yield* refuse(`${twice} is given twice`)
    const { known, name, unknown } = CommandLine.meant(allNames, words)
    if (unknown !== undefined) return yield* refuse(`${name} has no command ${unknown}; it has ${known.join(", ")}`)
    yield* cli(argv).pipe(
      // The library has already printed the error.
      Effect.catchIf(ValidationError.isValidationError, () => refuse(`see ${name} --help`)),
      Effect.provide(platform)
    )
  }).pipe(reported)
