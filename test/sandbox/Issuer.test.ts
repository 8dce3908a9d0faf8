/** The issuer's tokens, verified as a relying party does. */
import { createRemoteJWKSet, jwtVerify } from "jose"
import { afterAll, beforeAll, expect, it } from "vitest"
import { freshFolder, open } from "./Scene.ts"
import type { Scene } from "./Scene.ts"

let scene: Scene

beforeAll(async () => {
  scene = await open()
})

afterAll(() => scene.close())

const discover = async ({ call, issuer }: Scene) => (await call(`${issuer}/.well-known/openid-configuration`)).body

const tokens = async (body: object, { call, issuer }: Scene = scene) => (await call(`${issuer}/token`, body)).body

const verify = async (token: string, now: number, of: Scene = scene) => {
  const { issuer, jwks_uri } = await discover(of)
  const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(jwks_uri)), {
    issuer,
    audience: "sandbox-google",
    currentDate: new Date(now)
  })
  return payload
}

it("a token verifies against the published keys", async () => {
  const document = await discover(scene)
  expect(document).toMatchObject({ issuer: scene.issuer, jwks_uri: `${scene.issuer}/jwks` })
  const { access_token, id_token } = await tokens({ email: "Ada@example.com", name: "Ada" })
  expect(await verify(id_token, Date.now())).toMatchObject({
    iss: scene.issuer,
    email: "Ada@example.com",
    email_verified: true,
    name: "Ada"
  })
  expect((await verify(access_token, Date.now())).email).toBe("Ada@example.com")
  const { keys } = (await scene.call(document.jwks_uri)).body
  expect(Object.keys(keys[0]).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"])
})

it("each address is its own person", async () => {
  const subject = async (email: string) => (await verify((await tokens({ email })).id_token, Date.now())).sub
  const ada = await subject("ada@example.com")
  expect(await subject("ADA@example.com")).toBe(ada)
  expect(await subject("bob@example.com")).not.toBe(ada)
})

it("an address may be unverified, and a token for another audience", async () => {
  const { id_token } = await tokens({ email: "a@example.com", email_verified: false })
  expect(await verify(id_token, Date.now())).toMatchObject({ email_verified: false, name: "a" })
  const foreign = await tokens({ email: "a@example.com", audience: "another" })
  await expect(verify(foreign.id_token, Date.now())).rejects.toThrow(/aud/)
})

it("tokens use the steered clock", async () => {
  const own = await open()
  const old = await tokens({ email: "a@example.com" }, own)
  const now = Date.parse((await own.call("/control/clock", { advance_ms: 2 * 3_600_000 })).body.now)
  await expect(verify(old.id_token, now, own)).rejects.toThrow(/exp/)
  const fresh = await verify((await tokens({ email: "a@example.com" }, own)).id_token, now, own)
  expect(Math.abs(fresh.exp! * 1000 - now - 3_600_000)).toBeLessThan(60_000)
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  expect((await own.call("/issuer/userinfo", undefined, bearer(old.access_token))).status).toBe(401)
  await own.close()
})

it("userinfo answers the person of a token", async () => {
  const { access_token, id_token } = await tokens({ email: "a@example.com", name: "A" })
  const ask = (token: string) =>
    scene.call("/issuer/userinfo", undefined, { headers: { authorization: `Bearer ${token}` } })
  expect((await ask(access_token)).body).toMatchObject({ email: "a@example.com", email_verified: true, name: "A" })
  for (const token of [id_token, "nonsense", ""]) expect((await ask(token)).status).toBe(401)
})

it("keys survive a restart", async () => {
  const data_dir = freshFolder()
  const keysOf = async () => {
    const own = await open({ data_dir })
    const { body } = await own.call("/issuer/jwks")
    await own.close()
    return body
  }
  expect(await keysOf()).toEqual(await keysOf())
})

it("a wrong request gets the name of the error", async () => {
  for (const [body, field] of [
    [{}, "email"],
    [{ email: 3 }, "email"],
    [{ email: "nobody" }, "email"],
    [{ email: "a@example.com", email_verified: "yes" }, "email_verified"]
  ] as const) {
    const answer = await scene.call("/issuer/token", body)
    expect([answer.status, answer.body.details.field]).toEqual([400, field])
  }
})
