/** `tollgate operator keys`: manages the keys that programs use to call the operator's routes. */
import { Command, Options } from "@effect/cli"
import { Clock, Console, Effect, Layer, Option } from "effect"
import { day, toIso } from "../../kernel/Moment.ts"
import { Scope } from "../../operations/operator/ManagementKey.ts"
import type { ManagementKey } from "../../operations/operator/ManagementKey.ts"
import { ManagementKeys } from "../../operations/operator/ManagementKeys.ts"
import { serviceInfo } from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as Secret from "../Secret.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { endOf, json, oneLine, printed } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"
import { userName } from "./UserName.ts"

const keysOf = (facts: EnvironmentFacts) =>
  ManagementKeys.layer.pipe(
    Layer.provide([Secret.layer(facts), serviceInfo(facts, {})]),
    Layer.provideMerge(database(facts))
  )

const operator = Effect.sync(() => ({ name: userName(), via: "command" }) as const)

const shownOf = (key: ManagementKey) => ({
  ...key,
  created_at: toIso(key.created_at),
  expires_at: toIso(key.expires_at),
  last_used_at: key.last_used_at === null ? null : toIso(key.last_used_at)
})

const isScope = (word: string): word is Scope => (Scope.literals as ReadonlyArray<string>).includes(word)

const scopesIn = (text: string) => {
  const words = [...new Set(text.split(",").map((word) => word.trim()))]
  const unknown = words.find((word) => !isScope(word))
  return unknown === undefined
    ? Effect.succeed(words.filter(isScope))
    : refuse(
        `--scopes: ${CommandLine.printable(unknown) || "an empty name"} is not one of ${Scope.literals.join(", ")} (separated by commas)`
      )
}

/** The default lifetime of a key, in days. */
const daysPreset = 90

const keyCreate = Command.make(
  "create",
  {
    name: Options.text("name").pipe(
      Options.withDescription("the program's name in the audit log"),
      Options.withDefault("script")
    ),
    scopes: Options.text("scopes").pipe(
      Options.withDescription(`the key's scopes, separated by commas: ${Scope.literals.join(", ")}`)
    ),
    expires: Options.text("expires").pipe(
      Options.withDescription(
        `the key's last valid day (2027-01-31), or an RFC 3339 time; by default ${daysPreset} days from now`
      ),
      Options.optional
    ),
    json
  },
  ({ expires, json, name, scopes }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const input = {
        name: yield* oneLine("--name", name),
        scopes: yield* scopesIn(scopes),
        expires_at: Option.isSome(expires)
          ? yield* endOf(expires.value)
          : (yield* Clock.currentTimeMillis) + daysPreset * day
      }
      const by = yield* operator
      const made = yield* Effect.flatMap(ManagementKeys, (keys) => keys.create(by, input)).pipe(
        Effect.mapError((problem) =>
          refuse(
            problem._tag === "InvalidRequest"
              ? "--expires: must be in the future and at most two years from now"
              : problem.message
          )
        ),
        Effect.provide(keysOf(facts))
      )
      if (json) return yield* printed({ ...shownOf(made), management_key: made.management_key })
      yield* Console.log(made.management_key)
      yield* Console.error(`created ${made.id}, valid until ${toIso(made.expires_at)}; the key will not be shown again`)
    })
).pipe(Command.withDescription("Create a management key and print it once"))

const keyList = Command.make("list", { json }, ({ json }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const found = yield* Effect.flatMap(ManagementKeys, (keys) => keys.list).pipe(Effect.provide(keysOf(facts)))
    const keys = found.map(shownOf)
    if (json) return yield* printed({ keys })
    if (keys.length === 0) return yield* Console.log("there are no management keys")
    const rows = keys.map((key) => [
      key.id,
      `${key.key_prefix}…`,
      key.expires_at.slice(0, 16),
      key.last_used_at?.slice(0, 16) ?? "never",
      key.scopes.join(","),
      CommandLine.printable(key.name)
    ])
    yield* Console.log(CommandLine.table([["ID", "KEY", "EXPIRES", "USED", "SCOPES", "NAME"], ...rows]))
  })
).pipe(Command.withDescription("List active management keys"))

const keyEnd = Command.make("end", { id: Options.text("id") }, ({ id }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const by = yield* operator
    const ended = yield* Effect.flatMap(ManagementKeys, (keys) => keys.end(by, id)).pipe(Effect.provide(keysOf(facts)))
    if (!ended)
      return yield* refuse(`--id ${CommandLine.printable(id)}: there is no such key, or the key is no longer valid`)
    yield* Console.log(`ended ${id}`)
  })
).pipe(Command.withDescription("Revoke a management key immediately"))

export const subcommands = [keyCreate, keyList, keyEnd] as const

export const command = Command.make("keys").pipe(
  Command.withDescription("Manage the keys that programs use to call the operator's routes"),
  Command.withSubcommands(subcommands)
)
