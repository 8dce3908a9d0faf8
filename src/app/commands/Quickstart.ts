/**
 * `tollgate quickstart`: writes a configuration, creates a person with credit and an API key, and starts the service. A local server or the vendors
 * with keys in the environment provide the models.
 *
 * Where the specification is silent:
 * - If the configuration file exists, the service uses it unchanged.
 * - If no vendor's key is in the environment, the command prompts for a key or for a local server's address. It stores the typed key in the
 *   configuration file, which only its owner can read.
 * - The start that creates a key prints it once. Later starts explain how to create another key, and their `--json` output contains `null` instead of
 *   a key.
 */
import { Command, Options, Prompt } from "@effect/cli"
import { Console, Duration, Effect, Option, Redacted } from "effect"
import { existsSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import * as Config from "../Config.ts"
import { toDecimal } from "../../kernel/Money.ts"
import { codeLifetime, OperatorSessions } from "../../operations/operator/Sessions.ts"
import { BrowserSessions } from "../../people/auth/BrowserSessions.ts"
import * as Draft from "../quickstart/Draft.ts"
import * as FirstPerson from "../quickstart/FirstPerson.ts"
import * as LocalServer from "../quickstart/LocalServer.ts"
import { inEnvironment, vendors } from "../quickstart/Vendors.ts"
import type { Vendor } from "../quickstart/Vendors.ts"
import { auditedAt } from "./Audited.ts"
import { amountOf, json, printed } from "./Options.ts"
import { refuse } from "./Report.ts"
import { serve } from "./Serve.ts"
import type { Served } from "./Serve.ts"
import { userName } from "./UserName.ts"

const options = {
  upstream: Options.text("upstream").pipe(
    Options.withDescription(
      "the address of a local OpenAI-compatible server, such as http://127.0.0.1:11434/v1 (Ollama)"
    ),
    Options.optional
  ),
  config: Options.text("config").pipe(
    Options.withDescription("the configuration file to write; an existing file is used unchanged"),
    Options.withDefault("tollgate.json")
  ),
  email: Options.text("email").pipe(Options.withDescription("the first person's email address"), Options.optional),
  credit: Options.text("credit").pipe(
    Options.withDescription("the first person's credit, in USD"),
    Options.withDefault("20")
  ),
  yes: Options.boolean("yes").pipe(Options.withDescription("ask no questions")),
  json
}

const emailPreset = "owner@localhost"

const needed = (what: string) => (text: string) =>
  text.trim() === "" ? Effect.fail(what) : Effect.succeed(text.trim())

const isEmail = (text: string): boolean => /^[^\s@]+@[^\s@]+$/.test(text)

const askedVendor = Prompt.select<Vendor | undefined>({
  message: "Where are your models?",
  choices: [
    { title: "a local server (Ollama, vLLM, LM Studio, ...)", value: undefined },
    ...vendors.map((vendor) => ({ title: vendor.name, value: vendor }))
  ]
})
const askedAddress = Prompt.text({
  message: "Its address (for Ollama, http://127.0.0.1:11434/v1)",
  validate: needed("an address such as http://127.0.0.1:11434/v1")
})
const askedKey = ({ name }: Vendor) =>
  Prompt.password({ message: `Your API key for ${name}`, validate: needed("the key") })
const askedEmail = Prompt.text({
  message: "Your email address",
  default: emailPreset,
  validate: (text) => (isEmail(text) ? Effect.succeed(text) : Effect.fail("must be an email address"))
})

/** Returns the sources of models: the vendors in the environment and the given local server. */
const sourcesOf = Effect.fnUntraced(function* (upstream: Option.Option<string>, asks: boolean) {
  const known = inEnvironment(process.env)
  if (known.length > 0 || Option.isSome(upstream))
    return { vendors: known, local: Option.isNone(upstream) ? undefined : yield* LocalServer.ask(upstream.value) }
  if (!asks) return yield* refuse(Draft.noSource)
  const vendor = yield* askedVendor
  if (vendor === undefined) return { vendors: [], local: yield* LocalServer.ask(yield* askedAddress) }
  const key = yield* askedKey(vendor)
  return { vendors: [{ ...vendor, key: Redacted.value(key) }], local: undefined }
})

const configured = Effect.fnUntraced(function* (path: string, upstream: Option.Option<string>, asks: boolean) {
  if (existsSync(path)) {
    yield* Console.error(`serving the existing ${path}`)
    return
  }
  const text = Draft.textOf(yield* sourcesOf(upstream, asks))
  yield* Config.decodeFile(JSON.parse(text), path)
  yield* Effect.try({
    // Another process may have created the file in the meantime.
    try: () => writeFileSync(path, text, { flag: "wx" }),
    catch: (error) => refuse(`--config ${path} could not be written: ${(error as Error).message}`)
  })
  yield* Console.error(`wrote ${path}`)
})

interface Greeting extends FirstPerson.FirstPerson {
  readonly base_url: string
  readonly console: string
  readonly operator: string
  readonly config: string
  readonly model: string | undefined
  readonly credit: string
}

const keyPlace = "YOUR_KEY"

const textOf = ({ api_key, base_url, config, console, credit, model, operator, tenant_id }: Greeting): string => `
  Tollgate serves ${config}.

  base URL     ${base_url}/v1
  tenant       ${tenant_id}${api_key === undefined ? "" : ` (${credit} USD of credit)`}
  API key      ${api_key ?? `printed at the first start; to create another, run tollgate key create --tenant ${tenant_id}`}

  A first call:

  curl ${base_url}/v1/chat/completions -H "Authorization: Bearer ${api_key ?? keyPlace}" -H "Content-Type: application/json" -d '${JSON.stringify({ model: model ?? "auto", messages: [{ role: "user", content: "Hello" }] })}'

  And its cost:

  curl ${base_url}/v1/usage -H "Authorization: Bearer ${api_key ?? keyPlace}"

  The console as this person (the link works once, within 15 minutes), and the operator's console (once, within ${Duration.toMinutes(codeLifetime)} minutes;
  to create another link, run tollgate operator):

  ${console}
  ${operator}
`

export const command = Command.make("quickstart", options, ({ config, credit, email, json, upstream, yes }) =>
  Effect.gen(function* () {
    const amount = yield* amountOf(credit, "--credit")
    const asks = !yes && !json && process.stdin.isTTY
    yield* configured(config, upstream, asks)
    const address = Option.isSome(email) ? email.value : asks ? yield* askedEmail : emailPreset
    if (!isEmail(address)) return yield* refuse(`--email ${address}: must be an email address`)
    const greet = Effect.fnUntraced(function* ({ file, url }: Served) {
      const base_url = (file.public_url ?? url).replace(/\/$/, "")
      const audited = yield* auditedAt
      const person = yield* FirstPerson.make({ email: address, credit: amount, audited })
      const { code } = yield* Effect.flatMap(OperatorSessions, (sessions) => sessions.invite(userName()))
      const own = yield* Effect.flatMap(BrowserSessions, (sessions) =>
        sessions.invite(person, [audited({ action: "link", tenant_id: person.tenant_id, subject: person.account_id })])
      )
      if (json)
        return yield* printed({
          base_url,
          tenant_id: person.tenant_id,
          api_key: person.api_key ?? null,
          config: resolve(config)
        })
      const [console, operator] = [`${base_url}/console/#link=${own.code}`, `${base_url}/console/operator#code=${code}`]
      const greeting = {
        ...person,
        base_url,
        console,
        operator,
        config,
        model: file.models[0]?.id,
        credit: toDecimal(amount)
      }
      yield* Console.log(textOf(greeting))
    })
    return yield* serve({ config }, greet)
  })
).pipe(Command.withDescription("Write a configuration, create a person with credit and a key, and start the service"))
