/** `tollgate client`: manages the registered applications that sign people in or serve a website's contact form. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer } from "effect"
import type { EnvironmentFacts } from "../Environment.ts"
import { Clients, ConfiguredClients, isRedirectAddress } from "../../people/credentials/Clients.ts"
import { audited, auditedAt } from "./Audited.ts"
import * as CommandLine from "./CommandLine.ts"
import { database } from "./Database.ts"
import { json, oneLine, printed } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const clientsOf = (facts: EnvironmentFacts) =>
  Clients.layer.pipe(Layer.provide(Layer.succeed(ConfiguredClients, [])), Layer.provideMerge(database(facts)))

const clientCreate = Command.make(
  "create",
  {
    kind: Options.choice("kind", ["app", "oauth", "web"]).pipe(
      Options.withDescription(
        "app: signs people in with a provider's token; oauth: signs people in with the code or device flow; web: serves a contact form"
      )
    ),
    name: Options.text("name").pipe(Options.withDescription("the name that people see")),
    redirect: Options.text("redirect-uri").pipe(
      Options.withDescription("oauth only: a redirect URI for the code flow; may be repeated"),
      Options.repeated
    ),
    device: Options.boolean("device").pipe(
      Options.withDescription("oauth only: allow the device flow, for command-line tools and devices without a browser")
    ),
    trusted: Options.boolean("trusted").pipe(
      Options.withDescription("oauth only: trust this application, so that it may do everything that its user may do")
    )
  },
  ({ device, kind, name, redirect, trusted }) =>
    Effect.gen(function* () {
      const facts = yield* fromEnvironment
      const title = yield* oneLine("--name", name)
      if (kind === "oauth" && redirect.length === 0 && !device) {
        return yield* refuse("an oauth client needs --redirect-uri or --device")
      }
      if (kind !== "oauth" && device) return yield* refuse("--device: only oauth clients can use this option")
      if (kind !== "oauth" && trusted) return yield* refuse("--trusted: only oauth clients can use this option")
      if (kind !== "oauth" && redirect.length > 0)
        return yield* refuse("--redirect-uri: only oauth clients can use this option")
      const wrong = redirect.find((uri) => !isRedirectAddress(uri))
      if (wrong !== undefined) {
        return yield* refuse(
          `--redirect-uri ${wrong}: must be a URI without a fragment and must not use javascript: or file:`
        )
      }
      const client = yield* Effect.gen(function* () {
        const clients = yield* Clients
        const same = (yield* clients.list).find((one) => one.kind === kind && one.name === title)
        if (same !== undefined)
          return yield* refuse(
            `--name ${title}: ${same.client_id} already has this name; choose another name or revoke that client first`
          )
        const act = { action: "client.create", details: { kind, name: title, trusted, device } }
        const entry = yield* auditedAt
        return yield* clients.create({ kind, name: title, redirect_uris: redirect, trusted, device }, (subject) => [
          entry({ ...act, subject })
        ])
      }).pipe(Effect.provide(clientsOf(facts)))
      yield* Console.log(client.client_id)
    })
).pipe(Command.withDescription("Register an application and print its client id"))

const clientList = Command.make("list", { json }, ({ json }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const found = yield* Effect.flatMap(Clients, (clients) => clients.list).pipe(Effect.provide(clientsOf(facts)))
    if (json) return yield* printed({ clients: found })
    yield* Effect.forEach(
      found,
      ({ client_id, device, kind, name, redirect_uris, trusted }) => {
        const kinds = [kind, ...(trusted === true ? ["trusted"] : []), ...(device === true ? ["device"] : [])].join(
          ", "
        )
        return Console.log([client_id, kinds, CommandLine.printable(name), ...redirect_uris].join("\t"))
      },
      { discard: true }
    )
  })
).pipe(Command.withDescription("List the applications that commands registered"))

const clientRevoke = Command.make("revoke", { id: Options.text("id") }, ({ id }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const entry = yield* audited({ action: "client.revoke", subject: id })
    const done = yield* Effect.flatMap(Clients, (clients) => clients.revoke(id, [entry])).pipe(
      Effect.provide(clientsOf(facts))
    )
    if (!done) return yield* refuse(`--id ${id}: there is no such client, or the configuration file defines it`)
    yield* Console.log(`revoked ${id}`)
  })
).pipe(
  Command.withDescription(
    "Remove an application and end its sign-ins; a running service applies the change within a minute"
  )
)

export const subcommands = [clientCreate, clientList, clientRevoke] as const

export const command = Command.make("client").pipe(
  Command.withDescription("Manage registered applications"),
  Command.withSubcommands(subcommands)
)
