/** Three nodes over one PostgreSQL database: what they need of each other. They share a sandbox's outside world. */
import { Effect, Exit, Scope } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { LeversContract } from "../../src/sandbox/Levers.ts"
import * as Sandbox from "../../src/sandbox/Sandbox.ts"
import { startServer } from "../support/postgres.ts"
import type { Server } from "../support/postgres.ts"
import { command, freshFolder, start } from "../support/Service.ts"
import type { Call, Person, Service } from "../support/Service.ts"

const names = ["one", "two", "three"] as const
const secret = "5e".repeat(32)

let server: Server
let world: Sandbox.Sandbox
let scope: Scope.CloseableScope
let file: string
let nodes: Array<Service> = []
let database: Client

const begin = (name: string) =>
  start({ args: ["--config", file], env: { DATABASE_URL: server.url, TOLLGATE_SECRET: secret, NODE_NAME: name } })

beforeAll(async () => {
  scope = Effect.runSync(Scope.make())
  const [up, made] = await Promise.all([
    startServer(["fsync=off"]),
    Effect.runPromise(Scope.extend(Sandbox.make({}), scope))
  ])
  server = up
  world = made
  file = join(freshFolder(), "tollgate.json")
  writeFileSync(file, JSON.stringify({ ...world.configuration, public_url: "http://127.0.0.1:1" }))
  nodes = await Promise.all(names.map(begin))
  database = new Client(server.url)
  await database.connect()
  world.connect({ vendorId: (id: string) => Effect.promise(() => vendorOf(id)) } as LeversContract)
})
afterAll(async () => {
  await database.end()
  await Promise.all(nodes.map((node) => node.discard()))
  await Effect.runPromise(Scope.close(scope, Exit.void))
  await server.stop()
  rmSync(file)
})

const vendorOf = async (id: string): Promise<string | undefined> =>
  (await database.query("SELECT vendor_id FROM tollgate_media_jobs WHERE id = $1", [id])).rows[0]?.vendor_id

const billing = async (node: Service, who: Person, path: string, options: Call = {}) =>
  node.call(`/v1/tenants/${who.tenant_id}/billing${path}`, { token: who.token, ...options })

const entries = async (who: Person, what: { readonly type?: string; readonly source?: string }) => {
  // A test kills the node that leads, whichever that is.
  const { records } = (await billing(nodes.find(isAlive)!, who, "/ledger?per_page=200")).body.result
  return (records as ReadonlyArray<Record<string, unknown>>).filter((entry) =>
    Object.entries(what).every(([name, value]) => entry[name] === value)
  )
}

const signIn = async (node: Service, email: string): Promise<Person> => {
  const { id_token } = (await node.call(`${world.issuer}/token`, { json: { email } })).body
  const signedIn = await node.call("/v1/auth/google", { json: { id_token, client_id: world.client_id } })
  const { access_token: token, refresh_token } = signedIn.body.result.token_response
  const { account } = (await node.call("/v1/me", { token })).body.result
  return { token, refresh_token, account_id: account.id, tenant_id: account.tenant_id, email }
}

/** What the node answers to a call by the key: nobody of no such key. */
const statusOf = async (node: Service, key: string): Promise<number> =>
  (await node.call("/v1/chat/completions", { token: key, json: {} })).status

const everywhere = <A>(ask: (node: Service) => Promise<A>): Promise<Array<A>> => Promise.all(nodes.map(ask))

const isAlive = ({ process: { exitCode, signalCode } }: Service): boolean => exitCode === null && signalCode === null

const readiness = async (node: Service) => (await node.call("/readyz")).body
const leaderOf = async (node: Service): Promise<string | undefined> => (await readiness(node)).node?.leader

/** Far less than the minute that is remembered without a word. */
const soon = { timeout: 30_000, interval: 10 }

describe("three nodes", () => {
  it("say who they are, and agree who leads", async () => {
    const found = await everywhere(readiness)
    expect(found.map(({ node, status }) => [status, node.name])).toEqual(names.map((name) => ["ok", name]))
    await expect
      .poll(
        async () => new Set((await everywhere(readiness)).map(({ node }) => `${node.leader} ${node.nodes}`)).size,
        soon
      )
      .toBe(1)
    const agreed = await everywhere(readiness)
    expect(agreed.filter(({ node }) => node.leads).map(({ node }) => node.name)).toEqual([agreed[0].node.leader])
    const metrics = (await nodes[1]!.call("/metrics")).body as string
    expect(metrics).toContain('tollgate_node_info{node="two"} 1')
    expect(metrics).toMatch(/^tollgate_node_lease_seconds \d/m)
    expect(metrics).toContain("tollgate_nodes 3")
    // The loops that one node turns are nobody else's.
    const turning = () =>
      everywhere(async (node) => ((await node.call("/metrics")).body as string).includes('loop="outbox"'))
    await expect.poll(turning, soon).toEqual(agreed.map(({ node }) => node.leads))
  })

  it("refuse a key that was revoked on another, or by a command", async () => {
    const ada = await signIn(nodes[0]!, "ada@example.com")
    const path = `/v1/tenants/${ada.tenant_id}/applications`
    for (const by of ["a node", "a command"] as const) {
      const made = await nodes[0]!.call(path, { token: ada.token, json: { name: by } })
      const { api_key, id } = made.body.result
      expect(await everywhere((node) => statusOf(node, api_key))).toEqual([400, 400, 400])
      if (by === "a node") {
        expect((await nodes[0]!.call(`${path}/${id}`, { token: ada.token, method: "DELETE" })).status).toBe(200)
      } else {
        const { stdout } = await command(["key", "revoke", "--tenant", ada.tenant_id, "--id", id], {
          DATA_DIR: nodes[0]!.folder,
          DATABASE_URL: server.url
        })
        expect(stdout).toContain(
          "running nodes are notified and apply the change immediately; a node that misses the notification applies it within 2 s"
        )
      }
      await expect.poll(() => everywhere((node) => statusOf(node, api_key)), soon).toEqual([401, 401, 401])
    }
  })

  it("refuse the key of a run that ended on another, and those of the runs below it", async () => {
    const eve = await signIn(nodes[0]!, "eve@example.com")
    const run = async (node: Service, token: string) =>
      (await node.call("/v1/runs", { token, json: { limit: { usd: 1 } } })).body.result
    const one = await run(nodes[0]!, await nodes[0]!.key(eve))
    const two = await run(nodes[1]!, one.api_key)
    for (const { api_key } of [one, two])
      expect(await everywhere((node) => statusOf(node, api_key))).toEqual([400, 400, 400])
    const ended = await nodes[2]!.call(`/v1/runs/${one.id}`, { token: one.api_key, method: "DELETE" })
    expect(ended.status).toBe(200)
    for (const { api_key } of [one, two])
      await expect.poll(() => everywhere((node) => statusOf(node, api_key)), soon).toEqual([401, 401, 401])
    // Ended without a word to any of them.
    const three = await run(nodes[0]!, await nodes[0]!.key(eve))
    expect(await everywhere((node) => statusOf(node, three.api_key))).toEqual([400, 400, 400])
    await database.query("UPDATE tollgate_runs SET ended_at = created_at WHERE id = $1", [three.id])
    await expect.poll(() => everywhere((node) => statusOf(node, three.api_key)), soon).toEqual([401, 401, 401])
  })

  it("refuse a key that was deleted without a word to any of them", async () => {
    const bea = await signIn(nodes[0]!, "bea@example.com")
    const { api_key } = (
      await nodes[0]!.call(`/v1/tenants/${bea.tenant_id}/applications`, { token: bea.token, json: { name: "k" } })
    ).body.result
    expect(await everywhere((node) => statusOf(node, api_key))).toEqual([400, 400, 400])
    await database.query("DELETE FROM tollgate_tenants_applications WHERE tenant_id = $1", [bea.tenant_id])
    await expect.poll(() => everywhere((node) => statusOf(node, api_key)), soon).toEqual([401, 401, 401])
  })

  it("forget everything when the connection that listens was lost", async () => {
    const bob = await signIn(nodes[0]!, "bob@example.com")
    const { api_key } = (
      await nodes[0]!.call(`/v1/tenants/${bob.tenant_id}/applications`, { token: bob.token, json: { name: "k" } })
    ).body.result
    expect(await everywhere((node) => statusOf(node, api_key))).toEqual([400, 400, 400])
    // No node is told of this one, nor does a poll find it.
    await database.query("DELETE FROM tollgate_tenants_applications WHERE tenant_id = $1", [bob.tenant_id])
    await database.query("DELETE FROM tollgate_sql_signals")
    expect(await everywhere((node) => statusOf(node, api_key))).toEqual([400, 400, 400])
    await database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tollgate signals'"
    )
    await expect.poll(() => everywhere((node) => statusOf(node, api_key)), soon).toEqual([401, 401, 401])
  })

  it("take over a new signing key at once", async () => {
    const { code } = await command(["rotate-keys"], {
      DATA_DIR: nodes[0]!.folder,
      DATABASE_URL: server.url,
      TOLLGATE_SECRET: secret
    })
    expect(code).toBe(0)
    const { token } = await signIn(nodes[2]!, "cyd@example.com")
    expect(await everywhere(async (node) => (await node.call("/v1/me", { token })).status)).toEqual([200, 200, 200])
    await expect
      .poll(() => everywhere(async (node) => (await node.call("/.well-known/jwks.json")).body.keys.length), soon)
      .toEqual([2, 2, 2])
  })

  it("settle a generation job once, whoever looks, and look after one that nobody asks for", async () => {
    const eve = await signIn(nodes[0]!, "eve@example.com")
    const json = { model: "sandbox-image", prompt: "x", num_images: 4 }
    const made = await everywhere((node) => node.call("/v1/tools/media/generate", { token: eve.token, json }))
    const ids = made.map(({ body }) => body.request_id as string)
    for (const request_id of ids)
      await nodes[0]!.call(`${world.control}/media`, { json: { request_id, status: "COMPLETED" } })
    const look = (node: Service, id: string) =>
      node.call(`/v1/tools/media/status?request_id=${id}`, { token: eve.token })
    // Of the last one nobody asks.
    await everywhere((node) => Promise.all(ids.slice(0, 2).flatMap((id) => [look(node, id), look(node, id)])))
    await expect.poll(async () => (await entries(eve, { type: "debit" })).length, soon).toBe(3)
    expect(await everywhere(async (node) => (await look(node, ids[2]!)).body.settled)).toEqual([true, true, true])
    expect(await entries(eve, { type: "debit" })).toHaveLength(3)
  })

  it("reload a balance once, whichever of them moved it, and charge once when all are asked", async () => {
    const fay = await signIn(nodes[0]!, "fay@example.com")
    const { setup_url } = (await billing(nodes[0]!, fay, "/payment-methods/setup", { method: "POST" })).body.result
    await nodes[0]!.call(setup_url)
    const { balance } = (await billing(nodes[0]!, fay, "/credits")).body.result
    const auto_reload = { enabled: true, threshold_usd: balance, amount_credits: 7, payment_method_id: "pm_card_visa" }
    const set = await billing(nodes[0]!, fay, "/auto-reload", { method: "PUT", json: { auto_reload } })
    expect(set.status).toBe(200)
    const leader = await leaderOf(nodes[0]!)
    const other = nodes.find((_, i) => names[i] !== leader && i > 0)!
    const { models } = world.configuration as { models: ReadonlyArray<{ id: string }> }
    const called = await other.call("/v1/chat/completions", {
      token: fay.token,
      json: { model: models[0]!.id, messages: [{ role: "user", content: "one two" }] }
    })
    expect(called.status).toBe(200)
    await expect.poll(async () => (await entries(fay, { source: "purchase" })).length, soon).toBe(1)

    const gus = await signIn(nodes[1]!, "gus@example.com")
    const setup = (await billing(nodes[1]!, gus, "/payment-methods/setup", { method: "POST" })).body.result
    await nodes[1]!.call(setup.setup_url)
    const json = { auto_reload: { ...auto_reload, threshold_usd: 1 } }
    expect((await billing(nodes[1]!, gus, "/auto-reload", { method: "PUT", json })).status).toBe(200)
    const answers = await everywhere((node) => billing(node, gus, "/auto-reload/charge", { method: "POST" }))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409])
    expect(await entries(gus, { source: "purchase" })).toHaveLength(1)
    const { rows } = await database.query("SELECT status FROM tollgate_autoreload_attempts")
    expect(rows).toEqual([{ status: "paid" }, { status: "paid" }])
  })

  it("send each letter once, also when the node that leads is killed", async () => {
    const dan = await signIn(nodes[0]!, "dan@example.com")
    const invite = (node: Service, n: number) =>
      node.call(`/v1/tenants/${dan.tenant_id}/invites`, { token: dan.token, json: { email: `guest${n}@example.com` } })
    const received = async () => {
      const caught = (await nodes[0]!.call(`${world.control}/mail`)).body as ReadonlyArray<{ readonly to: string }>
      return caught
        .map(({ to }) => to)
        .filter((to) => to.startsWith("guest"))
        .toSorted()
    }
    const states = async () => {
      const found = await database.query("SELECT status, count(*)::int AS n FROM tollgate_mail_outbox GROUP BY status")
      return found.rows
    }
    const guests = (count: number) => Array.from({ length: count }, (_, i) => `guest${i}@example.com`).toSorted()
    const first = await Promise.all(Array.from({ length: 9 }, (_, i) => invite(nodes[i % 3]!, i)))
    expect(first.map(({ status }) => status)).toEqual(first.map(() => 201))
    await expect.poll(received, soon).toEqual(guests(9))
    // An email arrives before its row says so, and a row that a killed node left as sending stays so until its lease ends.
    await expect.poll(states, soon).toEqual([{ status: "sent", n: 9 }])

    const name = await leaderOf(nodes[0]!)
    const leader = nodes.find((_, i) => names[i] === name)!
    await leader.end("SIGKILL")
    const others = nodes.filter((node) => node !== leader)
    const later = await Promise.all(Array.from({ length: 6 }, (_, i) => invite(others[i % 2]!, 9 + i)))
    expect(later.map(({ status }) => status)).toEqual(later.map(() => 201))
    await expect.poll(received, soon).toEqual(guests(15))
    await expect.poll(() => leaderOf(others[0]!), soon).not.toBe(name)
    const next = await leaderOf(others[0]!)
    await expect.poll(() => leaderOf(others[1]!), soon).toBe(next)
    // Nothing comes a second time.
    await expect.poll(states, soon).toEqual([{ status: "sent", n: 15 }])
    expect(await received()).toEqual(guests(15))
  })

  // It waits for a lease to lapse, so it is one of the long tests.
  it.runIf(process.env["TEST_LONG"] === "1")(
    "go on where one that leads is frozen beyond its lease; what it settles late is charged once, and nothing else is done again",
    async () => {
      const hal = await signIn(nodes.find(isAlive)!, "hal@example.com")
      const name = await leaderOf(nodes.find(isAlive)!)
      const frozen = nodes.find((_, i) => names[i] === name)!
      const other = nodes.find((node) => isAlive(node) && node !== frozen)!
      const invite = (node: Service, n: number) =>
        node.call(`/v1/tenants/${hal.tenant_id}/invites`, { token: hal.token, json: { email: `late${n}@example.com` } })
      const { models } = world.configuration as { models: ReadonlyArray<{ id: string }> }
      const json = { model: models[0]!.id, messages: [{ role: "user", content: "one two" }] }
      const chat = (node: Service, more: object = {}) =>
        node.call("/v1/chat/completions", { token: hal.token, json: { ...json, ...more } })
      const count = async (text: string): Promise<number> =>
        Number((await database.query(`SELECT count(*) AS n FROM ${text}`)).rows[0].n)
      const open = () => count("tollgate_ledger_reservations")
      const caught = async () =>
        ((await other.call(`${world.control}/mail`)).body as ReadonlyArray<{ readonly to: string }>)
          .map(({ to }) => to)
          .filter((to) => to.startsWith("late"))
          .toSorted()

      const inHand = async () =>
        ((await other.call(`${world.control}/calls?service=mail&limit=1000`)).body as ReadonlyArray<unknown>).length

      // Two calls wait for their model, and a letter for the mail server, when it freezes.
      await other.call(`${world.control}/faults`, { json: { service: "chat", delay_ms: 6_000, times: 2 } })
      await other.call(`${world.control}/faults`, { json: { service: "mail", delay_ms: 3_000 } })
      const before = await inHand()
      const calls = [chat(frozen), chat(frozen, { stream: true })]
      await expect.poll(open, soon).toBe(2)
      expect((await invite(frozen, 0)).status).toBe(201)
      await expect.poll(inHand, soon).toBe(before + 1)
      frozen.process.kill("SIGSTOP")
      expect((await Promise.all([1, 2, 3].map((n) => invite(other, n)))).map(({ status }) => status)).toEqual([
        201, 201, 201
      ])
      const longerThanLease = { ...soon, timeout: 90_000 }
      await expect.poll(() => leaderOf(other), longerThanLease).toBe(names[nodes.indexOf(other)])
      const letters = [0, 1, 2, 3].map((n) => `late${n}@example.com`)
      await expect.poll(caught, soon).toEqual(letters)
      await expect.poll(open, longerThanLease).toBe(0)
      const { balance } = (await billing(other, hal, "/credits")).body.result

      frozen.process.kill("SIGCONT")
      const [whole, stream] = await Promise.all(calls)
      expect([whole!.status, whole!.headers.get("x-charge-usd")]).toEqual([200, "0.0000015"])
      expect([stream!.status, String(stream!.body).trimEnd().endsWith("data: [DONE]")]).toEqual([200, true])
      await expect.poll(() => leaderOf(frozen), soon).toBe(names[nodes.indexOf(other)])
      await expect.poll(async () => (await frozen.call("/readyz")).status, soon).toBe(200)
      const after = (await billing(other, hal, "/credits")).body.result.balance
      const { records } = (await other.call(`/v1/tenants/${hal.tenant_id}/usage`, { token: hal.token })).body.result
      const types = records.map((record: { error_type?: string }) => record.error_type)
      expect(types.toSorted()).toEqual(["interrupted", "interrupted", undefined, undefined])
      const debits = await entries(hal, { type: "debit" })
      expect(debits.map(({ amount }) => amount)).toEqual([0.0000015, 0.0000015])
      expect(balance - after).toBeCloseTo(0.000003, 9)
      // The records of the charges have the ids that the clients were told.
      const charged = records.filter(({ error_type }: { error_type?: string }) => error_type === undefined)
      expect(charged.map(({ id }: { id: string }) => id)).toEqual(debits.map(({ reference_id }) => reference_id))
      expect(debits.map(({ reference_id }) => reference_id)).toContain(whole!.headers.get("x-usage-id"))
      // It serves again, and charges.
      expect((await chat(frozen)).status).toBe(200)
      expect(await entries(hal, { type: "debit" })).toHaveLength(3)
      expect(await caught()).toEqual(letters)
      const { stdout } = await command(["verify"], { DATA_DIR: other.folder, DATABASE_URL: server.url })
      expect(stdout).toContain("every invariant of the books holds")
    }
  )
})
