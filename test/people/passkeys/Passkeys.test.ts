/** Passkeys over HTTP, with an authenticator in software: registering, signing in, and the attacks on both. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { relyingPartyOf } from "../../../src/people/passkeys/RelyingParty.ts"
import { Authenticator } from "../../support/Authenticator.ts"
import type { Spoiled } from "../../support/Authenticator.ts"
import { ownPage } from "../../support/Console.ts"
import { command, start } from "../../support/Service.ts"
import type { Answer, Person, Service } from "../../support/Service.ts"

let service: Service
let origin: string

beforeAll(async () => {
  // A browser offers no passkeys at an IP address.
  service = await start({ env: { HOST: "localhost", NODE_OPTIONS: "--dns-result-order=ipv4first" } })
  origin = `http://localhost:${service.port}`
})
afterAll(() => service?.discard())

let people = 0
const person = () => service.signIn(`passkey${++people}@example.com`)

const optionsFor = async ({ token }: Person) =>
  (await service.call("/v1/me/passkeys/options", { method: "POST", token })).body.result

const register = async (who: Person, authenticator: Authenticator, name = "laptop", spoiled: Spoiled = {}) => {
  const credential = authenticator.create(await optionsFor(who), spoiled)
  return service.call("/v1/me/passkeys", { token: who.token, json: { name, credential } })
}

const registered = async (who: Person, name = "laptop", authenticator = new Authenticator(origin)) => {
  const { body, status } = await register(who, authenticator, name)
  expect([status, body.result?.name]).toEqual([200, name])
  return { authenticator, id: body.result.id as string }
}

const passkeysOf = async ({ token }: Person) => (await service.call("/v1/me/passkeys", { token })).body.result.passkeys

const cookieIn = ({ headers }: Answer, name: string) =>
  headers
    .getSetCookie()
    .find((one) => one.startsWith(`${name}=`))
    ?.split(";", 1)[0]

/** Begins a sign-in in a browser of its own. */
const begin = async () => {
  const answer = await service.call("/console/passkeys/challenge", { method: "POST", headers: ownPage })
  expect(answer.status).toBe(200)
  return { options: answer.body.result, cookie: cookieIn(answer, "tollgate_passkey")! }
}

const finish = (cookie: string | undefined, credential: object) =>
  service.call("/console/passkeys/sign-in", {
    json: credential,
    headers: { ...ownPage, ...(cookie !== undefined && { cookie }) }
  })

const signIn = async (authenticator: Authenticator, spoiled: Spoiled = {}) => {
  const { cookie, options } = await begin()
  return finish(cookie, authenticator.get(options, spoiled))
}

/** The account of the session that a sign-in opened. */
const accountOf = async (answer: Answer): Promise<string | undefined> => {
  const cookie = cookieIn(answer, "tollgate_console")
  if (cookie === undefined) return undefined
  const session = await service.call("/console/session", { json: {}, headers: { ...ownPage, cookie } })
  return session.body.result.account_id
}

const refused = { status: 401, code: "passkey_rejected" }
const refusalOf = ({ body, status }: Answer) => ({ status, code: body.code })

describe("a passkey", () => {
  it("is registered by a person who is signed in, and signs them in without a name", async () => {
    const ada = await person()
    expect(await passkeysOf(ada)).toEqual([])
    const options = await optionsFor(ada)
    expect(options).toMatchObject({
      rp: { id: "localhost", name: "Tollgate" },
      user: { name: ada.email },
      attestation: "none",
      authenticatorSelection: { residentKey: "required", userVerification: "required" }
    })
    const { authenticator, id } = await registered(ada)
    expect(await passkeysOf(ada)).toEqual([{ id, name: "laptop", created_at: expect.any(String), last_used_at: null }])
    const answer = await signIn(authenticator)
    expect(await accountOf(answer)).toBe(ada.account_id)
    expect(answer.headers.getSetCookie()[0]).toMatch(/; HttpOnly; SameSite=Strict$/)
    expect((await passkeysOf(ada))[0].last_used_at).toEqual(expect.any(String))
  })

  it("is one of several, each with its name, until it is deleted", async () => {
    const [grace, other] = [await person(), await person()]
    const [phone, key] = [await registered(grace, "phone"), await registered(grace, "key")]
    expect((await passkeysOf(grace)).map(({ name }: { name: string }) => name)).toEqual(["phone", "key"])
    const { excludeCredentials } = await optionsFor(grace)
    expect(excludeCredentials).toEqual(
      [phone, key].map(({ authenticator }) => ({
        id: authenticator.id,
        type: "public-key",
        transports: ["internal", "hybrid"]
      }))
    )
    const remove = ({ token }: Person) => service.call(`/v1/me/passkeys/${phone.id}`, { method: "DELETE", token })
    expect(refusalOf(await remove(other))).toEqual({ status: 404, code: "passkey_not_found" })
    expect((await remove(grace)).status).toBe(200)
    expect(refusalOf(await signIn(phone.authenticator))).toEqual(refused)
    expect(await accountOf(await signIn(key.authenticator))).toBe(grace.account_id)
  })

  it("belongs to one account, and an account has twenty at most", async () => {
    const [ada, eve] = [await person(), await person()]
    const { authenticator } = await registered(ada)
    expect(refusalOf(await register(eve, authenticator))).toEqual({ status: 409, code: "passkey_registered" })
    for (let n = 1; n < 20; n++) await registered(ada, `key ${n}`)
    const more = await service.call("/v1/me/passkeys/options", { method: "POST", token: ada.token })
    expect([more.status, more.body.code, more.body.details]).toEqual([409, "too_many_passkeys", { limit: 20 }])
  })

  it("opens nothing for a suspended person", async () => {
    const mallory = await person()
    const { authenticator } = await registered(mallory)
    const env = { DATA_DIR: service.folder, PORT: String(service.port) }
    const token = (await command(["operator", "--token", "--name", "grace"], env)).stdout.trim()
    await service.call(`/v1/operator/people/${mallory.account_id}/suspend`, { token, json: {} })
    const answer = await signIn(authenticator)
    expect(refusalOf(answer)).toEqual({ status: 403, code: "account_suspended" })
    expect(await accountOf(answer)).toBeUndefined()
  })

  it("ends with its person's removal, because the address may later be another person's", async () => {
    const leaver = await person()
    const { authenticator } = await registered(leaver)
    const env = { DATA_DIR: service.folder, PORT: String(service.port) }
    const token = (await command(["operator", "--token", "--name", "grace"], env)).stdout.trim()
    const path = `/v1/operator/people/by-external-id/leaver`
    const put = () => service.call(path, { method: "PUT", token, json: { email: leaver.email } })
    expect((await put()).body.result.id).toBe(leaver.account_id)
    expect((await service.call(path, { method: "DELETE", token })).status).toBe(200)
    expect((await put()).body.result).toMatchObject({ id: leaver.account_id, status: "active" })
    expect(refusalOf(await signIn(authenticator))).toEqual(refused)
  })
})

describe("a registration", () => {
  it.each<[string, Spoiled]>([
    ["another origin", { origin: "http://evil.example" }],
    ["another domain", { rp_id: "evil.example" }],
    ["a sign-in", { type: "webauthn.get" }],
    ["a made-up challenge", { challenge: Buffer.alloc(32).toString("base64url") }],
    ["a person who was not verified", { verified: false }]
  ])("refuses %s", async (_, spoiled) => {
    const ada = await person()
    expect(refusalOf(await register(ada, new Authenticator(origin), "x", spoiled))).toEqual(refused)
    expect(await passkeysOf(ada)).toEqual([])
  })

  it("spends its challenge, which is one account's", async () => {
    const [ada, eve] = [await person(), await person()]
    const credential = new Authenticator(origin).create(await optionsFor(ada))
    const post = ({ token }: Person) => service.call("/v1/me/passkeys", { token, json: { name: "x", credential } })
    expect(refusalOf(await post(eve))).toEqual(refused)
    expect((await post(ada)).status).toBe(200)
    expect(refusalOf(await post(ada))).toEqual(refused)
  })

  it("is no matter of an API key", async () => {
    const key = await service.key(await person())
    expect((await service.call("/v1/me/passkeys/options", { method: "POST", token: key })).status).toBe(401)
  })
})

describe("a sign-in with a passkey", () => {
  let ada: Person
  let authenticator: Authenticator
  beforeAll(async () => {
    ada = await person()
    authenticator = (await registered(ada)).authenticator
  })

  it.each<[string, Spoiled]>([
    ["another origin", { origin: "http://evil.example" }],
    ["another domain", { rp_id: "evil.example" }],
    ["a registration", { type: "webauthn.create" }],
    ["a made-up challenge", { challenge: Buffer.alloc(32).toString("base64url") }],
    ["a person who was not verified", { verified: false }],
    ["another key's signature", { forged: true }],
    ["another account's name", { userHandle: Buffer.from("acc_other").toString("base64url") }],
    ["a counter that went back", { counter: 0 }]
  ])("refuses %s", async (_, spoiled) => {
    // The counter of the passkey is above zero.
    expect(await accountOf(await signIn(authenticator))).toBe(ada.account_id)
    const answer = await signIn(authenticator, spoiled)
    expect(refusalOf(answer)).toEqual(refused)
    expect(await accountOf(answer)).toBeUndefined()
  })

  it("refuses a counter that stands still", async () => {
    expect((await signIn(authenticator)).status).toBe(200)
    const { counter } = authenticator
    expect(refusalOf(await signIn(authenticator, { counter }))).toEqual(refused)
  })

  it("takes a passkey that counts nothing", async () => {
    const grace = await person()
    const synced = (await registered(grace, "synced", new Authenticator(origin, { counts: false }))).authenticator
    for (let n = 0; n < 2; n++) expect(await accountOf(await signIn(synced))).toBe(grace.account_id)
  })

  it("refuses a replay", async () => {
    const { cookie, options } = await begin()
    const signed = authenticator.get(options)
    expect((await finish(cookie, signed)).status).toBe(200)
    expect(refusalOf(await finish(cookie, signed))).toEqual(refused)
  })

  it("refuses another browser, which does not spend the challenge", async () => {
    const { cookie, options } = await begin()
    const signed = authenticator.get(options)
    expect(refusalOf(await finish(undefined, signed))).toEqual(refused)
    expect(refusalOf(await finish((await begin()).cookie, signed))).toEqual(refused)
    expect((await finish(cookie, signed)).status).toBe(200)
  })

  it("refuses a challenge of a registration", async () => {
    const { challenge } = await optionsFor(ada)
    const { cookie } = await begin()
    const signed = authenticator.get({ challenge, rpId: "localhost" })
    expect(refusalOf(await finish(cookie, signed))).toEqual(refused)
  })

  it("refuses an unknown passkey", async () => {
    expect(refusalOf(await signIn(new Authenticator(origin)))).toEqual(refused)
  })

  it("is asked for by the console's own page only", async () => {
    const cross = { "sec-fetch-site": "cross-site" }
    const challenge = await service.call("/console/passkeys/challenge", { method: "POST", headers: cross })
    expect(challenge.status).toBe(403)
    const { cookie, options } = await begin()
    const json = authenticator.get(options)
    const answer = await service.call("/console/passkeys/sign-in", { json, headers: { ...cross, cookie } })
    expect([answer.status, cookieIn(answer, "tollgate_console")]).toEqual([403, undefined])
  })

  it("names the field that is wrong", async () => {
    const { cookie } = await begin()
    const answer = await finish(cookie, { id: "x" })
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"])
  })

  it("ends after five minutes", async () => {
    const { cookie, options } = await begin()
    await service.control("/clock", { advance_ms: 301_000 })
    expect(refusalOf(await finish(cookie, authenticator.get(options)))).toEqual(refused)
    expect((await signIn(authenticator)).status).toBe(200)
  })
})

describe("an address", () => {
  it("has passkeys with a domain name, and https or localhost", () => {
    expect(relyingPartyOf("https://ai.example.com/gate")).toEqual({
      id: "ai.example.com",
      origin: "https://ai.example.com"
    })
    expect(relyingPartyOf("http://localhost:8080")?.id).toBe("localhost")
    for (const url of ["http://ai.example.com", "https://192.0.2.7", "http://127.0.0.1:8080", "https://[::1]"]) {
      expect([url, relyingPartyOf(url)]).toEqual([url, undefined])
    }
  })

  it("is known by the page", async () => {
    expect((await service.call("/console/providers")).body.result.passkeys).toBe(true)
  })
})

describe("an operator", () => {
  const scoped = async (scope: string) => {
    const session = (await command(["operator", "--token", "--name", "grace"], { DATA_DIR: service.folder })).stdout
    const expires_at = new Date(Date.now() + 3_600_000).toISOString()
    const json = { name: scope, scopes: [scope], expires_at }
    const made = await service.call("/v1/operator/management-keys", { token: session.trim(), json })
    return made.body.result.management_key as string
  }

  const actsOn = async ({ account_id }: Person, token: string) => {
    const { records } = (await service.call(`/v1/operator/audit?account_id=${account_id}`, { token })).body.result
    return (records as ReadonlyArray<Record<string, unknown>>).map(({ action, details, subject }) => ({
      action,
      subject,
      details
    }))
  }

  it("lists a person's passkeys and deletes one, with the scope for people, in the audit log", async () => {
    const [ada, other] = [await person(), await person()]
    const [own, stranger] = [await registered(ada, "own"), await registered(ada, "stranger")]
    const [people, keys, read] = [await scoped("people"), await scoped("keys"), await scoped("read")]
    const path = `/v1/operator/people/${ada.account_id}/passkeys`
    const { body } = await service.call(path, { token: people })
    expect(body.result).toEqual({ passkeys: await passkeysOf(ada) })
    expect(body.result.passkeys.map(({ id }: { id: string }) => id)).toEqual([own.id, stranger.id])
    const remove = (token: string, of = path) =>
      service.call(`${of}/${stranger.id}?reason=theft`, { token, method: "DELETE" })
    for (const token of [keys, read])
      expect(refusalOf(await remove(token))).toEqual({ status: 403, code: "insufficient_scope" })
    const elsewhere = `/v1/operator/people/${other.account_id}/passkeys`
    expect(refusalOf(await remove(people, elsewhere))).toEqual({ status: 404, code: "passkey_not_found" })
    expect((await service.call("/v1/operator/people/acc_none/passkeys", { token: people })).status).toBe(404)
    expect((await remove(people)).body.result).toEqual({ id: stranger.id, deleted: true })
    expect(refusalOf(await remove(people))).toEqual({ status: 404, code: "passkey_not_found" })
    expect(refusalOf(await signIn(stranger.authenticator))).toEqual(refused)
    expect(await accountOf(await signIn(own.authenticator))).toBe(ada.account_id)
    expect(await actsOn(ada, read)).toEqual([
      { action: "passkey.delete", subject: stranger.id, details: { reason: "theft" } }
    ])
  })

  it("ends sign-ins with the passkeys if asked, and with a registration that a stolen session has begun", async () => {
    const ada = await person()
    const { authenticator } = await registered(ada, "from a stolen session")
    const token = await scoped("people")
    const end = async (query: string) =>
      (await service.call(`/v1/operator/people/${ada.account_id}/sign-ins${query}`, { token, method: "DELETE" })).body
        .result
    const { account_id } = ada
    expect(await end("")).toEqual({ account_id, ended: 1, passkeys_deleted: 0, passkeys_left: 1 })
    // The passkey stays by default, so it signs in again.
    expect(await accountOf(await signIn(authenticator))).toBe(account_id)
    const again = await service.signIn(ada.email)
    const another = new Authenticator(origin)
    const begun = another.create(await optionsFor(again))
    expect(await end("?passkeys=true")).toEqual({ account_id, ended: 2, passkeys_deleted: 1, passkeys_left: 0 })
    expect(refusalOf(await signIn(authenticator))).toEqual(refused)
    const back = await service.signIn(ada.email)
    expect(await passkeysOf(back)).toEqual([])
    const late = await service.call("/v1/me/passkeys", { token: back.token, json: { name: "late", credential: begun } })
    expect(refusalOf(late)).toEqual(refused)
    const details = (await actsOn(ada, await scoped("read"))).map((act) => act.details)
    expect(details).toEqual([
      { open: 2, passkeys_deleted: 1, passkeys_left: 0 },
      { open: 1, passkeys_deleted: 0, passkeys_left: 1 }
    ])
  })
})
