/** `tollgate check`: explains a configuration and tests every connection that it defines. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Layer } from "effect"
import * as Config from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import * as Probes from "../check/Probes.ts"
import { redirectAddresses } from "../../people/auth/RedirectAddress.ts"
import * as CommandLine from "./CommandLine.ts"
import { json, printed } from "./Options.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const config = Options.text("config").pipe(Options.withDescription("the configuration file"))

const listOf = (names: ReadonlyArray<string>): string => (names.length === 0 ? "none" : names.join(", "))

/** Describes each part of a configuration in one line, with the file's own terms. */
const meaningOf = (file: ConfigFile, public_url: string): ReadonlyArray<readonly [part: string, meaning: string]> => [
  ["models", listOf([...file.models, ...file.embeddings, ...file.rerank].map(({ id }) => id))],
  ["tools", listOf(Object.entries(file.tools).flatMap(([kind, providers]) => (providers.length === 0 ? [] : [kind])))],
  ["sign-in", listOf([...Object.keys(file.identity), ...(file.email_sign_in ? ["email"] : [])])],
  ["redirects", listOf(redirectAddresses(file.identity, public_url).map(({ address, name }) => `${name} ${address}`))],
  ["new people", comersOf(file.registration)],
  ["mail", file.mail === undefined ? "off: no emails are sent" : `from ${file.mail.from}`],
  ["payments", file.payments === undefined ? "off: only the operator grants credit" : "on"],
  ["console", file.console.enabled ? "on" : "off"]
]

const comersOf = ({ domains, emails, groups, open }: ConfigFile["registration"]): string =>
  open
    ? "anyone who can sign in"
    : ["by invitation", ...domains, ...emails, ...groups.map(({ group }) => `group ${group}`)].join(", ")

const lineOf = ({ address, entry, fault }: Probes.Probed): ReadonlyArray<string> => [
  fault === undefined ? "ok" : "FAIL",
  entry,
  fault === undefined ? address : `${address} ${fault}`
]

export const command = Command.make("check", { config, json }, ({ config, json }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const file = yield* Config.readFile(config)
    // Fails if the file refers to an environment variable that is unset or empty.
    yield* Effect.scoped(Layer.build(Config.layer(facts, file)))
    const meaning = meaningOf(file, file.public_url ?? Config.listeningUrl(facts))
    const probes = yield* Probes.probe(file, process.env)
    const faults = probes.filter(({ fault }) => fault !== undefined)
    if (json) yield* printed({ ok: faults.length === 0, ...Object.fromEntries(meaning), probes })
    else {
      yield* Console.log(CommandLine.table(meaning))
      yield* Console.log(`\n${CommandLine.table(probes.map(lineOf))}`)
    }
    if (!Config.servesSomething(file)) return yield* refuse(Config.noModel(config))
    if (faults.length > 0) return yield* refuse(`${listOf(faults.map(({ entry }) => entry))}: see above`)
  })
).pipe(Command.withDescription("Explain a configuration and test every connection that it defines"))
