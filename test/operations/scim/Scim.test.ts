/** SCIM over HTTP: the requests that Okta and Entra send, and what they do to people, keys and teams. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { Authenticator } from "../../support/Authenticator.ts"
import { client, CodeIssuer } from "../../support/CodeIssuer.ts"
import { ownPage } from "../../support/Console.ts"
import { command, freePort, freshFolder, start } from "../../support/Service.ts"
import type { Answer, Service, StartOptions } from "../../support/Service.ts"
import * as Postgres from "../../support/postgres.ts"

const bearer = "the-bearer-of-the-directory"
const user = "urn:ietf:params:scim:schemas:core:2.0:User"
const enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
const patchOp = "urn:ietf:params:scim:api:messages:2.0:PatchOp"

let issuer: CodeIssuer
let service: Service
let team: string
let operator: string
let options: StartOptions

const configurationOf = (groups: ReadonlyArray<object>) => ({
  clients: [{ client_id: "app", name: "App" }],
  identity: { company: { issuer: issuer.url, client_id: client.id, client_secret_env: "CLIENT_SECRET" } },
  scim: { token_env: "SCIM_TOKEN" },
  registration: { domains: ["corp.example"], groups },
  rate_limits: { sign_in: 1000, authorize: 1000, token: 1000 },
  upstreams: { local: { base_url: `${issuer.url}/v1` } },
  models: [
    {
      id: "small",
      context_length: 1000,
      max_output_tokens: 100,
      price: { prompt_usd_per_million: "1", completion_usd_per_million: "1" },
      upstreams: [{ upstream: "local" }]
    }
  ]
})

beforeAll(async () => {
  issuer = await CodeIssuer.make(await CodeIssuer.freePort())
  await issuer.listen()
  const [folder, port] = [freshFolder(), await freePort()]
  const file = join(folder, "config.json")
  // Passkeys need an address with a name.
  const named = { HOST: "localhost", NODE_OPTIONS: "--dns-result-order=ipv4first" }
  const env = { CLIENT_SECRET: client.secret, SCIM_TOKEN: bearer, ...named }
  options = { folder, port, args: ["--config", file], env }
  writeFileSync(file, JSON.stringify(configurationOf([])))
  service = await start(options)
  const { token } = await signedIn("owner@corp.example")
  team = (await service.call("/v1/tenants", { token: token!, json: { name: "ML" } })).body.result.id
  await service.end()
  const rule = { provider: "scim", group: "ML leads", team, role: "admin" }
  writeFileSync(file, JSON.stringify(configurationOf([rule, { provider: "scim", group: "ML", team }])))
  service = await start(options)
  const facts = { DATA_DIR: folder, PORT: String(port) }
  operator = (await command(["operator", "--token", "--name", "grace"], facts)).stdout.trim()
}, 120_000)

afterAll(async () => {
  await service?.discard()
  await issuer?.close()
})

const scim = (path: string, json?: unknown, method?: string): Promise<Answer> =>
  service.call(`/scim/v2/${path}`, {
    token: bearer,
    ...(json !== undefined && { raw: JSON.stringify(json) }),
    ...(method !== undefined && { method }),
    headers: { "content-type": "application/scim+json" }
  })

const signIn = async (email: string): Promise<Answer> => {
  const id_token = await issuer.sign({ sub: email, email, email_verified: true })
  return service.call("/v1/auth/company", { json: { client_id: "app", id_token } })
}

/** A token and a key of a person. */
const signedIn = async (email: string) => {
  const { body, status } = await signIn(email)
  expect(status).toBe(200)
  const token: string = body.result.token_response.access_token
  const { account } = (await service.call("/v1/me", { token })).body.result
  const made = await service.call(`/v1/tenants/${account.tenant_id}/applications`, { token, json: { name: "key" } })
  return { token, id: account.id as string, key: made.body.result.api_key as string }
}

const statusOf = async (path: string, token: string) => (await service.call(path, { token })).status
const works = async ({ key, token }: { readonly key: string; readonly token: string }) => [
  await statusOf("/v1/me", token),
  await statusOf("/v1/models", key)
]

const roleOf = async (account: string): Promise<string | undefined> => {
  const { body } = await service.call(`/v1/operator/people/${account}`, { token: operator })
  const { memberships } = body.result
  return memberships.find(
    (one: { tenant_id: string; status: string }) => one.tenant_id === team && one.status === "active"
  )?.role
}

let people = 0
const address = () => `person${++people}@corp.example`

/** A user as Okta makes one. */
const okta = (email: string, more: object = {}) => ({
  schemas: [user],
  userName: email,
  name: { givenName: "Ada", familyName: "Lovelace" },
  emails: [{ primary: true, value: email, type: "work" }],
  displayName: "Ada Lovelace",
  locale: "en-US",
  externalId: `okta-${email}`,
  groups: [],
  password: "never-kept",
  active: true,
  ...more
})

const made = async (email = address()): Promise<string> => {
  const { body, status } = await scim("Users", okta(email))
  expect(status).toBe(201)
  return body.id
}

const patch = (path: string, ...Operations: ReadonlyArray<object>) =>
  scim(path, { schemas: [patchOp], Operations }, "PATCH")

const refusalOf = ({ body, status }: Answer) => [status, body.schemas?.[0], body.status, body.scimType]
const errorUrn = "urn:ietf:params:scim:api:messages:2.0:Error"

describe("the bearer", () => {
  it("is the directory's own, refused otherwise in SCIM's shape", async () => {
    const person = await signedIn(address())
    for (const token of [undefined, "wrong", person.token, person.key, operator]) {
      const answer = await service.call("/scim/v2/Users", token === undefined ? {} : { token })
      expect(refusalOf(answer)).toEqual([401, errorUrn, "401", undefined])
      expect(answer.body.detail).toEqual(expect.any(String))
    }
    expect((await scim("Users")).status).toBe(200)
    for (const path of ["/v1/me", "/v1/operator/people", "/v1/models"]) {
      expect([path, await statusOf(path, bearer)]).toEqual([path, 401])
    }
  })
})

describe("guesses of the bearer", () => {
  it("are counted for each address, apart from requests for tokens; the right bearer is not", async () => {
    const [folder, port] = [freshFolder(), await freePort()]
    const file = join(folder, "config.json")
    const rate_limits = { scim: 3, token: 1, sign_in: 1000 }
    writeFileSync(file, JSON.stringify({ ...configurationOf([]), rate_limits }))
    const guessed = await start({ ...options, folder, port, args: ["--config", file] })
    try {
      const guess = async (token: string) => (await guessed.call("/scim/v2/Users", { token })).status
      // A minute may begin in between, once.
      const guesses: Array<number> = []
      for (let i = 0; i < 8; i++) guesses.push(await guess(`guess-${i}`))
      expect(guesses.slice(0, 3)).toEqual([401, 401, 401])
      expect(guesses).toContain(429)
      expect(await guess(bearer)).toBe(200)
    } finally {
      await guessed.discard()
    }
  })
})

describe("discovery", () => {
  it("says what is offered", async () => {
    const config = await scim("ServiceProviderConfig")
    expect(config.headers.get("content-type")).toContain("application/scim+json")
    expect(config.body).toMatchObject({ patch: { supported: true }, bulk: { supported: false } })
    const types = (await scim("ResourceTypes")).body
    expect(types.Resources.map((one: { endpoint: string }) => one.endpoint)).toEqual(["/Users", "/Groups"])
    const { body } = await scim("Schemas")
    expect(body.totalResults).toBe(2)
    expect(body.Resources[0].id).toBe(user)
  })
})

describe("a user", () => {
  it("is looked for, made, and found as Okta does it", async () => {
    const email = address()
    const filter = encodeURIComponent(`userName eq "${email}"`)
    const nothing = await scim(`Users?filter=${filter}&startIndex=1&count=100`)
    expect(nothing.body).toMatchObject({ totalResults: 0, startIndex: 1, itemsPerPage: 0, Resources: [] })
    const answer = await scim("Users", okta(email.toUpperCase()))
    expect(answer.status).toBe(201)
    const { body } = answer
    expect(answer.headers.get("location")).toBe(`http://localhost:${service.port}/scim/v2/Users/${body.id}`)
    expect(body).toMatchObject({
      schemas: [user],
      userName: email,
      externalId: expect.stringMatching(/^okta-/),
      name: { givenName: "Ada", familyName: "Lovelace" },
      active: true,
      meta: { resourceType: "User", location: `http://localhost:${service.port}/scim/v2/Users/${body.id}` }
    })
    expect(JSON.stringify(body)).not.toContain("never-kept")
    expect((await scim(`Users?filter=${filter}`)).body.Resources).toEqual([body])
    const byId = encodeURIComponent(`externalId eq "${body.externalId}"`)
    expect((await scim(`Users?filter=${byId}`)).body.Resources).toEqual([body])
    expect((await scim(`Users/${body.id}`)).body).toEqual(body)
    // The person signs in to this account.
    expect((await signedIn(email)).id).toBe(body.id)
  })

  it("is the account that has verified the address, and is made once", async () => {
    const email = address()
    const person = await signedIn(email)
    expect(await made(email)).toBe(person.id)
    expect(refusalOf(await scim("Users", okta(email)))).toEqual([409, errorUrn, "409", "uniqueness"])
    expect(refusalOf(await scim("Users", okta(email, { userName: "another" })))).toEqual([
      409,
      errorUrn,
      "409",
      "uniqueness"
    ])
  })

  it.each([
    ["Okta", { op: "replace", value: { active: false } }, { op: "replace", value: { active: true } }],
    ["Entra", { op: "Replace", path: "active", value: "False" }, { op: "Replace", path: "active", value: "True" }],
    [
      "Entra, in its older form",
      { op: "Replace", path: "active", value: [{ $ref: null, value: "False" }] },
      { op: "Replace", path: "active", value: [{ $ref: null, value: "True" }] }
    ],
    ["RFC 7644", { op: "replace", path: `${user}:active`, value: false }, { op: "add", path: "active", value: true }]
  ])("is deactivated and activated as %s writes it", async (_, off, on) => {
    const person = await signedIn(address())
    const id = await made(`person${people}@corp.example`)
    expect(id).toBe(person.id)
    expect(await works(person)).toEqual([200, 200])
    const deactivated = await patch(`Users/${id}`, off)
    expect([deactivated.status, deactivated.body.active]).toEqual([200, false])
    expect(await works(person)).toEqual([401, 401])
    const refused = await signIn(`person${people}@corp.example`)
    expect([refused.status, refused.body.code]).toEqual([403, "account_suspended"])
    expect((await patch(`Users/${id}`, on)).body.active).toBe(true)
    // The sign-in has ended; the key works again.
    expect(await works(person)).toEqual([401, 200])
  })

  describe("whom the operator has suspended", () => {
    const on = { op: "replace", path: "active", value: true }
    const off = { op: "replace", path: "active", value: false }
    const byOperator = async (id: string, act: "suspend" | "activate") =>
      (await service.call(`/v1/operator/people/${id}/${act}`, { token: operator, json: {} })).body.result
    const isActive = async (id: string): Promise<boolean> => (await scim(`Users/${id}`)).body.active

    it("stays suspended, whatever the directory says, until the operator activates them", async () => {
      const email = address()
      const person = await signedIn(email)
      const id = await made(email)
      expect(await byOperator(id, "suspend")).toMatchObject({ status: "suspended", changed: true })
      for (const ask of [
        () => patch(`Users/${id}`, on),
        () => scim(`Users/${id}`, okta(email), "PUT"),
        () => patch(`Users/${id}`, off),
        () => patch(`Users/${id}`, on)
      ]) {
        const answer = await ask()
        expect([answer.status, answer.body.active]).toEqual([200, false])
      }
      expect(await works(person)).toEqual([401, 401])
      await scim(`Users/${id}`, undefined, "DELETE")
      const again = await scim("Users", okta(email))
      expect([again.status, again.body.id, again.body.active]).toEqual([201, id, false])
      expect((await signIn(email)).body.code).toBe("account_suspended")
      expect(await byOperator(id, "activate")).toMatchObject({ status: "active", changed: true })
      expect(await isActive(id)).toBe(true)
      expect((await signIn(email)).status).toBe(200)
    })

    it("is activated by the directory if only the directory's suspension is left", async () => {
      const id = await made()
      await patch(`Users/${id}`, off)
      expect(await byOperator(id, "suspend")).toMatchObject({ status: "suspended", changed: true })
      expect(await byOperator(id, "suspend")).toMatchObject({ changed: false })
      // Another change says nothing about the suspension.
      await patch(`Users/${id}`, { op: "replace", path: "displayName", value: "Countess" })
      await patch(`Users/${id}`, on)
      expect(await isActive(id)).toBe(false)
      await patch(`Users/${id}`, off)
      await byOperator(id, "activate")
      expect(await isActive(id)).toBe(true)
      await patch(`Users/${id}`, off)
      expect(await isActive(id)).toBe(false)
      await patch(`Users/${id}`, on)
      expect(await isActive(id)).toBe(true)
      const { body } = await service.call(`/v1/operator/audit?account_id=${id}&limit=200`, { token: operator })
      const acts = (body.result.records as ReadonlyArray<Record<string, string>>)
        .filter(({ action }) => /^person\.(suspend|activate)$/.test(action!))
        .map(({ action, operator: by }) => `${by} ${action}`)
      expect(acts.toReversed()).toEqual([
        "scim person.suspend",
        "grace person.suspend",
        "scim person.activate",
        "scim person.suspend",
        "grace person.activate",
        "scim person.suspend",
        "scim person.activate"
      ])
    })

    it("is suspended by the operator's program too, though the directory had done so", async () => {
      const email = address()
      const id = await made(email)
      await patch(`Users/${id}`, off)
      const path = `/v1/operator/people/by-external-id/${id}`
      const put = await service.call(path, { method: "PUT", token: operator, json: { email, suspended: true } })
      expect(put.status).toBeLessThan(300)
      await patch(`Users/${id}`, on)
      expect(await isActive(id)).toBe(false)
    })
  })

  it.runIf(Postgres.isWanted())("cannot call on another node either, once it is deactivated or removed", async () => {
    const { port: _, ...shared } = options
    const other = await start({ ...shared, env: { ...shared.env, NODE_NAME: "other" } })
    try {
      const worksThere = async ({ key, token }: { readonly key: string; readonly token: string }) => [
        (await other.call("/v1/me", { token })).status,
        (await other.call("/v1/models", { token: key })).status
      ]
      const [first, second] = [address(), address()]
      const [left, gone] = [await signedIn(first), await signedIn(second)]
      await made(first)
      await made(second)
      // The other node remembers both.
      expect([await worksThere(left), await worksThere(gone)]).toEqual([
        [200, 200],
        [200, 200]
      ])
      await patch(`Users/${left.id}`, { op: "replace", value: { active: false } })
      await scim(`Users/${gone.id}`, undefined, "DELETE")
      await vi.waitFor(
        async () => {
          expect([await worksThere(left), await worksThere(gone)]).toEqual([
            [401, 401],
            [401, 401]
          ])
        },
        { timeout: 60_000 }
      )
    } finally {
      await other.end()
    }
  })

  it("is replaced by Okta's PUT, also to deactivate", async () => {
    const email = address()
    const id = await made(email)
    const renamed = await scim(
      `Users/${id}`,
      okta(email, { displayName: "Countess", name: { givenName: "Ada", familyName: "King" } }),
      "PUT"
    )
    expect(renamed.body).toMatchObject({ displayName: "Countess", name: { familyName: "King" }, active: true })
    const { body } = await service.call(`/v1/operator/people/${id}`, { token: operator })
    expect(JSON.stringify(body)).toContain("Countess")
    expect((await scim(`Users/${id}`, okta(email, { active: false }), "PUT")).body.active).toBe(false)
    expect((await signIn(email)).body.code).toBe("account_suspended")
  })

  it("is changed by Entra's operations, and unknown attributes change nothing", async () => {
    const id = await made()
    const { body, status } = await patch(
      `Users/${id}`,
      { op: "Add", path: 'emails[type eq "work"].value', value: "new@corp.example" },
      { op: "Replace", path: "name.familyName", value: "King" },
      { op: "Add", path: "externalId", value: "entra-1" },
      { op: "Add", path: `${enterprise}:department`, value: "Physics" },
      { op: "Replace", value: { displayName: "Ada King", "name.givenName": "Augusta" } }
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({
      externalId: "entra-1",
      displayName: "Ada King",
      name: { givenName: "Augusta", familyName: "King" },
      emails: [{ value: "new@corp.example" }]
    })
    const cleared = await patch(`Users/${id}`, { op: "Remove", path: "externalId" })
    expect(cleared.body.externalId).toBeUndefined()
  })

  it("is removed: no token and no key works, and a later POST brings the account back without its keys", async () => {
    const email = address()
    const person = await signedIn(email)
    const id = await made(email)
    const removed = await scim(`Users/${id}`, undefined, "DELETE")
    expect([removed.status, removed.body]).toEqual([204, ""])
    expect(await works(person)).toEqual([401, 401])
    expect(refusalOf(await scim(`Users/${id}`))).toEqual([404, errorUrn, "404", undefined])
    expect(refusalOf(await scim(`Users/${id}`, undefined, "DELETE"))[0]).toBe(404)
    expect(await made(email)).toBe(id)
    expect(await works(person)).toEqual([401, 401])
    expect((await signIn(email)).status).toBe(200)
  })

  it("is removed with the passkeys: a later person with the address is not entered by the former one", async () => {
    const email = address()
    const { token } = await signedIn(email)
    const id = await made(email)
    const authenticator = new Authenticator(`http://localhost:${service.port}`)
    const options = (await service.call("/v1/me/passkeys/options", { method: "POST", token })).body.result
    const passkey = { name: "laptop", credential: authenticator.create(options) }
    expect((await service.call("/v1/me/passkeys", { token, json: passkey })).status).toBe(200)
    const enter = async () => {
      const begun = await service.call("/console/passkeys/challenge", { method: "POST", headers: ownPage })
      const cookie = begun.headers.getSetCookie()[0]!.split(";", 1)[0]!
      const json = authenticator.get(begun.body.result)
      return (await service.call("/console/passkeys/sign-in", { json, headers: { ...ownPage, cookie } })).status
    }
    expect(await enter()).toBe(200)
    await scim(`Users/${id}`, undefined, "DELETE")
    expect(await made(email)).toBe(id)
    expect(await enter()).toBe(401)
  })

  it("is listed by pages", async () => {
    for (let n = 0; n < 3; n++) await made()
    const all = (await scim("Users?count=200")).body
    expect(all.totalResults).toBe(all.Resources.length)
    const second = (await scim("Users?startIndex=2&count=2")).body
    expect(second).toMatchObject({ totalResults: all.totalResults, startIndex: 2, itemsPerPage: 2 })
    expect(second.Resources).toEqual(all.Resources.slice(1, 3))
    expect((await scim("Users?startIndex=-1&count=0")).body).toMatchObject({ startIndex: 1, Resources: [] })
  })

  it.each<[string, (id: string) => Promise<Answer>, string]>([
    ["a user without a name", () => scim("Users", { schemas: [user] }), "invalidValue"],
    ["a user without an address", () => scim("Users", { userName: "ada" }), "invalidValue"],
    ["a body that is no object", () => scim("Users", [1]), "invalidValue"],
    ["another filter", () => scim(`Users?filter=${encodeURIComponent('title co "x"')}`), "invalidFilter"],
    ["an unknown operation", (id) => patch(`Users/${id}`, { op: "move", path: "active" }), "invalidValue"],
    ["a removal without a path", (id) => patch(`Users/${id}`, { op: "remove" }), "invalidPath"],
    [
      "a wrong active",
      (id) => patch(`Users/${id}`, { op: "replace", path: "active", value: "perhaps" }),
      "invalidValue"
    ]
  ])("refuses %s, and changes nothing", async (_, ask, scimType) => {
    const id = await made()
    const before = (await scim(`Users/${id}`)).body
    expect(refusalOf(await ask(id))).toEqual([400, errorUrn, "400", scimType])
    expect((await scim(`Users/${id}`)).body).toEqual(before)
  })
})

describe("a group", () => {
  it("puts its members into its team with its role, and takes them out", async () => {
    const [ada, grace] = [await made(), await made()]
    const group = await scim("Groups", {
      schemas: ["urn:ietf:params:scim:schemas:core:2.0:Group"],
      displayName: "ML",
      members: [{ value: ada }]
    })
    expect(group.status).toBe(201)
    const path = `Groups/${group.body.id}`
    expect([await roleOf(ada), await roleOf(grace)]).toEqual(["member", undefined])
    // Entra adds and removes by `members`, Okta removes by a filter.
    await patch(path, { op: "Add", path: "members", value: [{ value: grace }] })
    expect([await roleOf(ada), await roleOf(grace)]).toEqual(["member", "member"])
    const shown = (await scim(path)).body
    expect(shown.members.map(({ value }: { value: string }) => value).toSorted()).toEqual([ada, grace].toSorted())
    expect((await scim(`${path}?excludedAttributes=members`)).body.members).toBeUndefined()
    await patch(path, { op: "Remove", path: "members", value: [{ value: grace }] })
    expect(await roleOf(grace)).toBeUndefined()
    await patch(path, { op: "remove", path: `members[value eq "${ada}"]` })
    expect(await roleOf(ada)).toBeUndefined()
    await patch(path, { op: "replace", path: "members", value: [{ value: ada }, { value: grace }] })
    expect([await roleOf(ada), await roleOf(grace)]).toEqual(["member", "member"])
    // Okta renames by a value with the id. Another name is another rule.
    const renamed = await patch(path, { op: "replace", value: { id: group.body.id, displayName: "ML leads" } })
    expect(renamed.body.displayName).toBe("ML leads")
    expect([await roleOf(ada), await roleOf(grace)]).toEqual(["admin", "admin"])
    const replaced = await scim(path, { displayName: "ML leads", members: [{ value: ada }] }, "PUT")
    expect(replaced.status).toBe(200)
    expect([await roleOf(ada), await roleOf(grace)]).toEqual(["admin", undefined])
    expect((await scim(path, undefined, "DELETE")).status).toBe(204)
    expect(await roleOf(ada)).toBeUndefined()
  })

  it("loses a removed person, who loses the team", async () => {
    const ada = await made()
    const { body } = await scim("Groups", { displayName: "ML", members: [{ value: ada }] })
    expect(await roleOf(ada)).toBe("member")
    await scim(`Users/${ada}`, undefined, "DELETE")
    expect((await scim(`Groups/${body.id}`)).body.members).toEqual([])
    expect(await roleOf(ada)).toBeUndefined()
    await scim(`Groups/${body.id}`, undefined, "DELETE")
  })

  it("is found by its name, is unique, and takes no unknown member", async () => {
    const { body } = await scim("Groups", { displayName: "Physics" })
    const filter = encodeURIComponent('displayName eq "Physics"')
    expect((await scim(`Groups?filter=${filter}&excludedAttributes=members`)).body.Resources[0].id).toBe(body.id)
    expect(refusalOf(await scim("Groups", { displayName: "Physics" }))).toEqual([409, errorUrn, "409", "uniqueness"])
    const unknown = await patch(`Groups/${body.id}`, { op: "add", path: "members", value: [{ value: "acc_nobody" }] })
    expect(refusalOf(unknown)).toEqual([400, errorUrn, "400", "invalidValue"])
    expect(refusalOf(await patch(`Groups/${body.id}`, { op: "replace", path: "color", value: "red" }))[3]).toBe(
      "invalidPath"
    )
    expect(refusalOf(await scim("Groups/scg_none"))[0]).toBe(404)
  })
})
