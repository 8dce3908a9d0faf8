/** Runs every fenced snippet of the README and the guides as a reader would. A snippet without a runner here fails the last test. */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { Either } from "effect"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { decodeFile } from "../../src/app/Config.ts"
import { client, CodeIssuer } from "../support/CodeIssuer.ts"
import { Browser } from "../support/OAuth.ts"
import { startLocalServer } from "../support/LocalServer.ts"
import { environmentOf, freePort, freshFolder, root, start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

interface Snippet {
  readonly file: string
  readonly language: string
  readonly text: string
}

const guides = join("src", "app", "guides")
const documents = [
  "README.md",
  ...readdirSync(join(root, guides))
    .filter((file) => file.endsWith(".md"))
    .map((file) => join(guides, file))
]
const snippets: ReadonlyArray<Snippet> = documents.flatMap((file) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
    file,
    language: language!,
    text: text!
  }))
)

const ran = new Set<Snippet>()
/** Takes the snippets that match, at least one, and remembers that they were run. */
const take = (language: string, has: RegExp): ReadonlyArray<Snippet> => {
  const found = snippets.filter((snippet) => snippet.language === language && has.test(snippet.text))
  expect(found.length).toBeGreaterThan(0)
  for (const snippet of found) ran.add(snippet)
  return found
}

let service: Service
let person: Person
let key: string
const scratch = join(root, "test", "app", ".snippets")

beforeAll(async () => {
  service = await start()
  person = await service.signIn("reader@example.com")
  key = await service.key(person)
  mkdirSync(scratch, { recursive: true })
})
afterAll(async () => {
  rmSync(scratch, { recursive: true, force: true })
  await service?.discard()
})

/** The snippet with this service's address and key. */
const here = (text: string): string =>
  text.replaceAll("http://127.0.0.1:8787", service.url).replaceAll("svc-prod-…", key)

const run = promisify(execFile)

/** Runs a shell snippet. `tollgate` is the built command on this service's data. */
const shell = async (text: string, env: Record<string, string> = {}, before = ""): Promise<string> => {
  const script = `set -eu\ntollgate() { node "${root}/dist/main.js" "$@"; }\n${before}\n${here(text)}`
  const { stdout } = await run("bash", ["-c", script], {
    cwd: scratch,
    env: { ...process.env, DATA_DIR: service.folder, LOG_LEVEL: "error", ...env }
  })
  return stdout
}

/** Runs TypeScript, with the package's entry points found in the source. */
const typescript = async (name: string, text: string): Promise<string> => {
  const file = join(scratch, `${name}.ts`)
  writeFileSync(file, here(text))
  const { stdout } = await run(process.execPath, ["--import", "tsx", file], { cwd: root })
  return stdout
}

describe("a first call", () => {
  it("is made by OpenAI's client", async () => {
    const [snippet] = take("ts", /new OpenAI/)
    const printed = await typescript("openai", `${snippet!.text}\nconsole.log(answer.choices[0]!.message.content)`)
    expect(printed).toContain("Hello")
  })

  it("shows up in the usage", async () => {
    const [snippet] = take("sh", /^curl \S+\/v1\/usage /)
    expect(JSON.parse(await shell(snippet!.text, { KEY: key }))).toMatchObject({ total_requests: 1 })
  })

  it("is in the export", async () => {
    const [snippet] = take("sh", /billing\/export/)
    await shell(snippet!.text, { TENANT: person.tenant_id, TOKEN: person.token })
    const charge = String((await service.usage(person))[0].cost)
    expect(readFileSync(join(scratch, "usage.csv"), "utf8").trimEnd().split("\r\n")).toHaveLength(2)
    const focus = readFileSync(join(scratch, "focus.csv"), "utf8").trimEnd().split("\r\n")
    expect([focus[0]!.startsWith("BilledCost,"), Number(charge) > 0, focus.length]).toEqual([true, true, 3])
  })

  it("is made by Claude Code's settings", async () => {
    const [snippet] = take("sh", /^export ANTHROPIC_BASE_URL/)
    const claude = `claude() { curl -sS "$ANTHROPIC_BASE_URL/v1/messages" -H "Authorization: Bearer $ANTHROPIC_AUTH_TOKEN" \\
      -H 'Content-Type: application/json' -d "{\\"model\\":\\"$ANTHROPIC_MODEL\\",\\"max_tokens\\":50,\\"messages\\":[{\\"role\\":\\"user\\",\\"content\\":\\"hi\\"}]}"; }`
    expect(JSON.parse(await shell(snippet!.text, { KEY: key }, claude))).toMatchObject({ type: "message" })
  })

  it("is made by Codex's settings", async () => {
    const [snippet] = take("toml", /wire_api = "responses"/)
    const value = (name: string): string => new RegExp(`^${name} = "([^"]*)"`, "m").exec(here(snippet!.text))![1]!
    const answer = await service.call(`${value("base_url")}/${value("wire_api")}`, {
      token: key,
      json: { model: value("model"), input: "hi", store: false }
    })
    expect(answer.body).toMatchObject({ object: "response", status: "completed" })
  })
})

describe("a key", () => {
  it("gets limits", async () => {
    const [snippet] = take("sh", /^curl -X PATCH/)
    const { body } = await service.call(`/v1/tenants/${person.tenant_id}/applications`, { token: person.token })
    const printed = await shell(snippet!.text, {
      TENANT: person.tenant_id,
      ID: body.result.records[0].id,
      TOKEN: person.token
    })
    expect(JSON.parse(printed).result).toMatchObject({ spending_limit_usd: 20, allowed_models: ["sandbox-small"] })
  })

  it("has tags and an end user", async () => {
    const [snippet] = take("sh", /X-Tags/)
    expect(JSON.parse(await shell(snippet!.text, { KEY: key }))).toMatchObject({ object: "chat.completion" })
    expect((await service.usage(person))[0]).toMatchObject({
      tags: { project: "atlas", run: "42" },
      end_user: "customer-7"
    })
  })

  it("gets receipts that prove the request and the answer", async () => {
    const [snippet] = take("sh", /receipt verify/)
    const body = { model: "sandbox-small", messages: [{ role: "user", content: "hi" }] }
    writeFileSync(join(scratch, "request.json"), JSON.stringify(body))
    await vi.waitUntil(async () => (await service.call("/v1/log/keys")).body.keys.length === 1, 20_000)
    const [logKey] = (await service.call("/v1/log/keys")).body.keys
    expect(await shell(snippet!.text, { KEY: key, LOG_KEY: logKey })).toContain("request")
  })

  it("has budgets, which are raised", async () => {
    const env = { TENANT: person.tenant_id, TOKEN: person.token }
    const [create] = take("sh", /^curl \S+ \S+\/tenants\/\$TENANT\/budgets -H/)
    const [made, listed] = (await shell(create!.text.replace("\ncurl", "\necho\ncurl"), env)).split("\n")
    const { result } = JSON.parse(made!)
    expect(result).toMatchObject({
      name: "agents",
      limit: { usd: 50, requests: 2000 },
      period: "day",
      spent: { usd: 0 }
    })
    expect(JSON.parse(listed!).result.budgets).toEqual([result])
    const [raise] = take("sh", /\/budgets\/\$BUDGET\/raise/)
    const raised = JSON.parse(await shell(raise!.text, { ...env, BUDGET: result.id })).result
    expect(raised.raises).toMatchObject([{ usd: 20, created_by: person.account_id }])
  })

  it("gets 402 in the documented shape when the balance is too small", async () => {
    const [snippet] = take("json", /insufficient_credits/)
    const poor = await service.signIn("poor@example.com")
    const answer = await service.call("/v1/chat/completions", {
      token: await service.key(poor),
      json: { model: "sandbox-large", n: 128, max_tokens: 4096, messages: [{ role: "user", content: "hi" }] }
    })
    expect(answer.status).toBe(402)
    const documented = JSON.parse(snippet!.text) as { error: string; code: string; details: object }
    expect(answer.body).toMatchObject({ error: documented.error, code: documented.code })
    expect(Object.keys(answer.body.details)).toEqual(expect.arrayContaining(Object.keys(documented.details)))
  })
})

describe("a run", () => {
  it("gets a budget, spends of it, and ends", async () => {
    const [snippet] = take("sh", /^RUN=/)
    const printed = (await shell(snippet!.text, { KEY: await service.key(person) }))
      .split(/(?<=\})(?=\{)/)
      .map((text) => JSON.parse(text))
    expect(printed).toMatchObject([
      { object: "chat.completion" },
      {
        result: {
          name: "nightly report",
          spent: { requests: 1 },
          by_model: [{ model: "sandbox-small", requests: 1 }],
          ended_at: null
        }
      },
      { result: { spent: { requests: 1 }, ended_at: expect.any(String) } }
    ])
  })

  it("gets 402 in the documented shape when its limit is reached", async () => {
    const [snippet] = take("json", /budget_exceeded/)
    const made = await service.call("/v1/runs", {
      token: await service.key(person),
      json: { name: "nightly report", limit: { requests: 0 } }
    })
    const { api_key, id } = made.body.result
    const answer = await service.call("/v1/search?query=tides", { token: api_key })
    expect(answer.status).toBe(402)
    const documented = JSON.parse(snippet!.text)
    Object.assign(documented.details, { budget_id: id, limit: "0" })
    expect(answer.body).toEqual(documented)
  })
})

describe("a configuration", () => {
  it("starts the service with the documented command line", async () => {
    const [command] = take("sh", /npm start -- --config tollgate\.json/)
    const folder = freshFolder()
    for (const { text } of take("json", /"clients"/)) {
      writeFileSync(join(folder, "tollgate.json"), text)
      const args = /-- (--config \S+)/
        .exec(command!.text)![1]!
        .replace("tollgate.json", join(folder, "tollgate.json"))
        .split(" ")
      const served = await start({ args, env: { UPSTREAM_KEY: "sk" } })
      expect((await served.call("/v1/prices")).status).toBe(200)
      await served.discard()
    }
  })

  it("takes the documented witnesses", () => {
    for (const { text } of take("json", /"witnesses"/)) {
      const { log } = Either.getOrThrow(decodeFile(JSON.parse(text), "the guide"))
      expect(log).toMatchObject({ required: 1, cosign_seconds: 1_000 })
      expect(log.witnesses.map(({ key }) => key.name)).toEqual(["witness.example/w1"])
    }
  })

  it("has the entries of vendors that conformance/Vendors calls", () => {
    take("json", /"bedrock"/)
    expect(readFileSync(join(root, "test", "conformance", "Vendors.test.ts"), "utf8")).toContain("configure.md")
  })

  it("takes the documented routing", async () => {
    const routed = take("json", /"routing"|"aliases"/)
    const [whole] = take("json", /"clients"/)
    for (const { text } of routed) {
      const file = join(freshFolder(), "tollgate.json")
      writeFileSync(file, JSON.stringify({ ...(JSON.parse(whole!.text) as object), ...(JSON.parse(text) as object) }))
      const env = { UPSTREAM_KEY: "sk", OPENAI_API_KEY: "sk" }
      await (await start({ args: ["--config", file], env })).discard()
    }
  })

  it("takes the documented price", async () => {
    const [snippet] = take("json", /"long_context"/)
    const [whole] = take("json", /"clients"/)
    const config = JSON.parse(whole!.text) as { models: Array<{ price: unknown }> }
    config.models[0]!.price = JSON.parse(snippet!.text)
    const file = join(freshFolder(), "tollgate.json")
    writeFileSync(file, JSON.stringify(config))
    const served = await start({ args: ["--config", file], env: { UPSTREAM_KEY: "sk" } })
    await served.discard()
  })
})

describe("an operator", () => {
  it("runs the documented commands on a live database", async () => {
    const [snippet] = take("sh", /^tollgate serve/)
    // This service is already served; the other commands run beside it.
    const commands = snippet!.text.replace(/^tollgate serve.*\n/, "").replace("TENANT", person.tenant_id)
    const printed = await shell(commands.replace("--search ada", "--search reader"))
    expect(printed).toContain(person.tenant_id)
    expect(printed).toMatch(/http:\/\/127\.0\.0\.1/)
  })

  it("imports a class from a file, twice", async () => {
    const [file] = take("csv", /^email,name,team/)
    const [command] = take("sh", /^tollgate people import class\.csv/)
    writeFileSync(join(scratch, "class.csv"), file!.text)
    expect(await shell(command!.text)).toBe("2 people: 2 created, 0 already known, 2 new keys, 1 new teams\n")
    expect(readFileSync(join(scratch, "keys.csv"), "utf8")).toMatch(
      /^ada@school\.example,Ada,ten_\w+,svc-prod-[0-9a-f]{64}$/m
    )
    expect(await shell(command!.text)).toBe("2 people: 0 created, 2 already known, 0 new keys\n")
  })

  it("gives a class its allowances, a plan and a code", async () => {
    const env = {
      TENANT: person.tenant_id,
      TOKEN: (await shell("tollgate operator --token")).trim()
    }
    const [commands] = take("sh", /^tollgate allowance set/m)
    expect(await shell(commands!.text, env)).toContain(
      "receives 20 credits per month, rollover none; 20 credits are unused"
    )
    const [limit] = take("sh", /^curl \S+ \S+\/operator\/budgets/)
    const [made, listed] = (await shell(limit!.text.replace("\ncurl", "\necho\ncurl"), env)).split("\n")
    expect(JSON.parse(made!).result).toMatchObject({ name: "all students", scope: "everyone", by_operator: true })
    expect(JSON.parse(listed!).result.budgets).toEqual([JSON.parse(made!).result])
    const [put] = take("sh", /^curl .*\/allowance/)
    expect(JSON.parse(await shell(put!.text, env)).result).toMatchObject({
      unused_usd: 20,
      rollover: { up_to_usd: 10 }
    })
    const [codes] = take("sh", /^tollgate voucher create/)
    const [code] = (await shell(codes!.text)).split("\n")
    const redeemed = await service.call("/v1/vouchers/redeem", { method: "POST", token: person.token, json: { code } })
    expect(redeemed.body.result).toMatchObject({ amount_usd: 5 })
    const [plan] = take("json", /"plans"/)
    const file = join(freshFolder(), "tollgate.json")
    writeFileSync(file, plan!.text)
    expect(
      (await shell(`tollgate allowance set --tenant $TENANT --plan student --config ${file}`, env)).trim()
    ).toMatch(/receives 20 credits per month \(plan student\), rollover up to 10 USD/)
  })

  it("moves the books as e2e/Moving does", () => {
    take("sh", /^tollgate migrate --to postgres/)
    expect(readFileSync(join(root, "test", "e2e", "Moving.test.ts"), "utf8")).toContain("--to")
  })
})

describe("a first hour", () => {
  it("goes from quickstart to keys with limits", async () => {
    const [quickstart] = take("sh", /^tollgate quickstart/)
    const [check] = take("sh", /^tollgate check/)
    const [create] = take("sh", /^tollgate key create/)
    const [grant] = take("sh", /^tollgate grant --tenant TENANT --amount 25\n$/)
    const { address, server } = await startLocalServer()
    const folder = freshFolder()
    const env = { DATA_DIR: folder, PORT: String(await freePort()), LOG_LEVEL: "error" }
    const config = join(folder, "tollgate.json")
    /** Serves, takes the printed line, and stops when `use` is done. */
    const served = async (text: string, words: RegExp, use: (tenant_id: string) => Promise<void>) => {
      const args = words.exec(text)![1]!.replace("http://127.0.0.1:11434", address).split(" ")
      const child = spawn(process.execPath, [join(root, "dist", "main.js"), ...args, "--json"], {
        cwd: folder,
        env: await environmentOf(env),
        stdio: ["ignore", "pipe", "ignore"]
      })
      const [line] = (await once(child.stdout, "data")) as [Buffer]
      await use((JSON.parse(String(line)) as { readonly tenant_id: string }).tenant_id)
      const closed = once(child, "close")
      child.kill("SIGTERM")
      await closed
    }
    await served(quickstart!.text, /^tollgate (.*)$/m, async (tenant_id) => {
      expect(await shell(check!.text.replace("tollgate.json", config), env)).toContain("upstreams.local")
      expect(await shell(create!.text.replace("TENANT", tenant_id), env)).toMatch(/^svc-prod-[0-9a-f]{64}\n$/)
      expect(await shell(grant!.text.replace("TENANT", tenant_id), env)).toContain("its balance is 45")
    })
    // `npm start` runs `serve`.
    const [npm] = take("sh", /^npm start -- --quickstart/)
    await served(npm!.text.replace("npm start --", "serve"), /^(.*)$/m, async (tenant_id) =>
      expect(tenant_id).toMatch(/^ten_/)
    )
    server.close()
  })
})

describe("a company with an issuer of its own", () => {
  it("signs in with the documented entries, and prints the redirect URI", async () => {
    const [entries] = take("json", /"keycloak"/)
    const [check] = take("sh", /KEYCLOAK_CLIENT_SECRET/)
    const [base] = take("json", /"clients"/)
    const issuer = await CodeIssuer.make(await CodeIssuer.freePort())
    await issuer.listen()
    const [folder, port] = [freshFolder(), await freePort()]
    const url = `http://127.0.0.1:${port}`
    const own = entries!.text
      .replace("https://ai.example.com", url)
      .replace("https://id.example.com/realms/company", issuer.url)
      .replace('"tollgate"', JSON.stringify(client.id))
    const file = join(folder, "tollgate.json")
    writeFileSync(file, JSON.stringify({ ...JSON.parse(base!.text), ...JSON.parse(own) }))
    const env = { DATA_DIR: folder, UPSTREAM_KEY: "sk", KEYCLOAK_CLIENT_SECRET: client.secret }
    const command = check!.text.replace("tollgate.json", file).replace("…", `'${client.secret}'`)
    // The documented vendor does not exist, so the check fails on that alone.
    const printed = await shell(`${command.trimEnd()} || true`, env)
    expect(printed).toContain(`${url}/oauth/signed-in/keycloak`)
    expect(printed).toMatch(/ok +identity\.keycloak/)
    const served = await start({ folder, port, args: ["--config", file], env })
    for (const [groups, location] of [
      [["ai-users"], `${url}/console/`],
      [["others"], `${url}/console/sign-in?error=not_invited`]
    ] as const) {
      issuer.claims = { sub: groups[0], email: `${groups[0]}@example.com`, email_verified: true, groups }
      const browser = new Browser(served)
      const left = await browser.open(`${url}/console/sign-in/keycloak`)
      const returned = await browser.open(left.location!)
      expect((await browser.open(returned.location!)).location).toBe(location)
    }
    await served.discard()
    await issuer.close()
  })
})

describe("a reseller", () => {
  it("sells credit with the sandbox's payment processor, and by invoice", async () => {
    const [config] = take("json", /"STRIPE_SECRET_KEY"/)
    const [check] = take("sh", /^export STRIPE_SECRET_KEY/)
    const [buy] = take("sh", /^curl .*\/billing\/checkout/)
    const [ledger] = take("sh", /^curl .*source=purchase/)
    const [invoice] = take("sh", /^CUSTOMER=/)
    const [owed] = take("sh", /^tollgate owed/)
    const buyer = await service.signIn("card@example.com")
    const env = { TENANT: buyer.tenant_id, TOKEN: buyer.token }
    const { checkout_url } = JSON.parse(await shell(buy!.text, env)).result
    const bought = async () => JSON.parse(await shell(ledger!.text, env)).result.records
    expect(await bought()).toEqual([])
    // The sandbox's page pays at once, and its webhook comes.
    await service.call(checkout_url)
    await vi.waitFor(async () => expect(await bought()).toEqual([expect.objectContaining({ amount: 20 })]), 20_000)

    const [base] = take("json", /"clients"/)
    const [folder, port] = [freshFolder(), await freePort()]
    const file = join(folder, "tollgate.json")
    writeFileSync(file, JSON.stringify({ ...JSON.parse(base!.text), ...JSON.parse(config!.text) }))
    const secrets = { UPSTREAM_KEY: "sk", STRIPE_SECRET_KEY: "sk_test", STRIPE_WEBHOOK_SECRET: "whsec_test" }
    const checked = await shell(
      `${check!.text.replace("tollgate.json", file).replaceAll("=…", "=sk_test").trimEnd()} || true`,
      { ...secrets, DATA_DIR: folder }
    )
    expect(checked).toContain("payments")
    const commands = invoice!.text.replace("tollgate.json", file)
    const printed = await shell(commands, secrets)
    expect(printed).toContain("(plan business)")
    expect(printed).toMatch(/^svc-prod-[0-9a-f]{64}$/m)
    const [create] = commands.split("\n")
    const again = await shell(`${create}\necho $CUSTOMER`)
    expect(printed).toContain(`for ${again.trim()} (invoice-2027-001)`)
    const customers = JSON.parse(await shell("tollgate tenants --search 'Example Ltd' --json")).tenants
    expect(customers).toEqual([expect.objectContaining({ name: "Example Ltd", balance: "510" })])
    expect(await shell(owed!.text)).toContain("owe")

    const served = await start({ folder, port, args: ["--config", file], env: secrets })
    const token = (await shell("tollgate operator --token", { DATA_DIR: folder })).trim()
    const { body } = await served.call("/v1/operator/plans", { token })
    expect(body.result.plans).toEqual([
      { name: "business", allowance: { amount_usd: 10, period: "month", rollover: "none" }, price_factor: "0.9" }
    ])
    await served.discard()
  })
})

describe("a host program", () => {
  it("builds the documented layers over its own database", async () => {
    for (const [i, { text }] of take("ts", /Database\.layerOver/).entries()) {
      const imports = /^import \{ (?:Effect, )?Layer \} from "effect"$/m
      const program = text
        .replace(imports, `import { Effect, Layer } from "effect"\nconst secretBytes = new Uint8Array(32).fill(7)`)
        .replace('"yours.db"', JSON.stringify(join(freshFolder(), "yours.db")))
      const name = /const (\w+) = layer\.pipe/.exec(text)![1]!
      expect(
        await typescript(
          `host-${i}`,
          `${program}\nawait Effect.runPromise(Effect.scoped(Layer.build(${name})))\nconsole.log("built")`
        )
      ).toBe("built\n")
    }
  })

  it("is installed as e2e/Package does", () => {
    take("sh", /^npm install \.\/tollgate/)
    expect(readFileSync(join(root, "test", "e2e", "Package.test.ts"), "utf8")).toContain("embed.md")
  })

  // The reader's own ledger and transfers are this project's, in memory. `without` is tested in testing/LedgerSuite.
  const mine = `import { layerMemory, layerTransfersMemory } from "tollgate/testing"
      const MyLedger = { layer: layerMemory }
      const MyTransfers = { layer: layerTransfersMemory }
      const it = async (name: string, check: () => Promise<unknown>) => { await check(); console.log(name) }\n`

  it("checks a ledger with the suite, as the README says", async () => {
    const [readme] = take("ts", /checkLedger/)
    expect(await typescript("suite", mine + readme!.text)).toContain("keeps its books")
  })

  it("checks a ledger and transfers with the suites, as the guide says", async () => {
    const [, guide] = take("ts", /checkLedger/)
    expect(await typescript("suites", mine + guide!.text)).toContain("loses no credit")
    take("", /story 4 of 500 fails/)
  })
})

describe("the commands of a first minute", () => {
  it("are what CI and the package's scripts run", () => {
    const scripts = (
      JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { scripts: Record<string, string> }
    ).scripts
    for (const { text } of take("sh", /^npm ci && npm (start|test)$/m))
      expect(Object.keys(scripts)).toContain(/npm (start|test)$/m.exec(text)![1])
    expect(readFileSync(join(root, ".ci", "run"), "utf8")).toMatch(/npm ci[\s\S]*npm test/)
  })
})

it("every snippet has a runner", () => {
  expect(
    snippets.filter((snippet) => !ran.has(snippet)).map(({ file, text }) => `${file}: ${text.split("\n")[0]}`)
  ).toEqual([])
})
