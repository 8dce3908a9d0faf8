/** `tollgate operator`: prints a sign-in link to the operator's console or a token for scripts, and lists sessions. */
import { Command, Options } from "@effect/cli"
import { Console, Duration, Effect, Layer, Option } from "effect"
import * as Config from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as RunningAddress from "../RunningAddress.ts"
import { toIso } from "../../kernel/Moment.ts"
import { nameMax } from "../../operations/operator/Operator.ts"
import { codeLifetime, OperatorSessions } from "../../operations/operator/Sessions.ts"
import * as Keys from "./OperatorKeys.ts"
import * as Secret from "../Secret.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { json, oneLine, printed } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"
import { userName } from "./UserName.ts"

const sessionsOf = (facts: EnvironmentFacts) =>
  OperatorSessions.layer.pipe(Layer.provide(Secret.layer(facts)), Layer.provideMerge(database(facts)))

/** Finds the service's public URL: in the configuration file, otherwise from the service that runs on DATA_DIR, otherwise from HOST and PORT. */
const publicUrl = Effect.fnUntraced(function* (facts: EnvironmentFacts, config: Option.Option<string>) {
  const file = Option.isNone(config) ? undefined : yield* Config.readFile(config.value)
  const url = file?.public_url ?? (yield* RunningAddress.find(facts)) ?? Config.listeningUrl(facts)
  return url.replace(/\/$/, "")
})

const list = Effect.fnUntraced(function* (json: boolean) {
  const found = (yield* Effect.flatMap(OperatorSessions, (sessions) => sessions.list)).map((session) => ({
    ...session,
    created_at: toIso(session.created_at),
    signed_in_at: session.signed_in_at === null ? null : toIso(session.signed_in_at),
    expires_at: toIso(session.expires_at)
  }))
  if (json) return yield* printed({ sessions: found })
  if (found.length === 0) return yield* Console.log("no operator is signed in")
  const rows = found.map(({ expires_at, id, kind, name, signed_in_at }) => [
    id,
    kind,
    signed_in_at ?? "not used yet",
    expires_at,
    CommandLine.printable(name)
  ])
  yield* Console.log(CommandLine.table([["ID", "KIND", "SINCE", "UNTIL", "NAME"], ...rows]))
})

const nameOf = Effect.fnUntraced(function* (given: Option.Option<string>) {
  const name = Option.isNone(given) ? userName() : yield* oneLine("--name", given.value)
  return name.length > nameMax ? yield* refuse(`--name: must be at most ${nameMax} characters`) : name
})

export const subcommands = [Keys.command] as const

export const command = Command.make(
  "operator",
  {
    name: Options.text("name").pipe(
      Options.withDescription("your name in the audit log (by default, your user name on this machine)"),
      Options.optional
    ),
    config: Options.text("config").pipe(
      Options.withDescription(
        "the service's configuration file, for its public_url (by default, the URL of the service that runs on DATA_DIR)"
      ),
      Options.optional
    ),
    token: Options.boolean("token").pipe(
      Options.withDescription("print an access token for scripts, valid for an hour")
    ),
    list: Options.boolean("list").pipe(Options.withDescription("list unused links and open sessions")),
    end: Options.text("end").pipe(
      Options.withDescription("revoke the link or session with this id (see --list)"),
      Options.optional
    ),
    json
  },
  (asked) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const name = yield* nameOf(asked.name)
      const url = yield* publicUrl(facts, asked.config)
      yield* Effect.gen(function* () {
        const sessions = yield* OperatorSessions
        if (asked.list) return yield* list(asked.json)
        if (Option.isSome(asked.end)) {
          const ended = yield* sessions.end(asked.end.value, { name, via: "command" })
          if (!ended)
            return yield* refuse(`--end ${asked.end.value}: there is no such link or session, or it has already ended`)
          return yield* Console.log(`ended ${asked.end.value}`)
        }
        if (asked.token) {
          const token = yield* sessions.openForScripts(name)
          return yield* asked.json ? printed(token) : Console.log(token.access_token)
        }
        const { code, expires_at } = yield* sessions.invite(name)
        const link = `${url}/console/operator#code=${code}`
        if (asked.json) return yield* printed({ link, expires_at: toIso(expires_at), name })
        yield* Console.log(link)
        yield* Console.error(
          `The link opens the console as ${CommandLine.printable(name)}. It works once, within ${Duration.toMinutes(codeLifetime)} minutes`
        )
      }).pipe(Effect.provide(sessionsOf(facts)))
    })
).pipe(
  Command.withDescription("Print a single-use link to the operator's console"),
  Command.withSubcommands(subcommands)
)
