/** `/openapi.json` of a running sandbox: it says enough to call every route, and every example in it works when it is sent. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { commandHere } from "../support/CommandLine.ts"
import { linkTo } from "../support/mail.ts"
import { start } from "../support/Service.ts"
import type { Answer, Service } from "../support/Service.ts"

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly security: ReadonlyArray<Record<string, ReadonlyArray<string>>>
  readonly parameters: ReadonlyArray<{
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly description?: string
    readonly example?: unknown
  }>
  readonly requestBody?: { readonly content: Record<string, { readonly example?: unknown }> }
  readonly responses: Record<string, { readonly headers?: Record<string, unknown>; readonly content?: object }>
}

interface Document {
  readonly servers: ReadonlyArray<{ readonly url: string }>
  readonly components: { readonly securitySchemes: Record<string, { readonly description: string }> }
  readonly paths: Record<string, Record<string, Operation>>
}

/** The sandbox's levers stand in the document at an address of their own. */
interface AtAddress {
  readonly servers?: ReadonlyArray<{ readonly url: string }>
}

let service: Service
let document: Document
let operations: ReadonlyArray<readonly [name: string, Operation]>

beforeAll(async () => {
  service = await start()
  document = (await service.call("/openapi.json")).body
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => method !== "servers")
      .map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const)
  )
})
afterAll(() => service.discard())

/** Those that may be refused because nothing is left to pay with are the metered ones. */
/** Counting tokens costs nothing, and is refused where a call would be. */
const isMetered = ({ operationId, responses }: Operation) =>
  operationId !== "messages.countTokens" && JSON.stringify(responses["402"] ?? {}).includes("InsufficientCredits")

describe("the document", () => {
  it("has a summary of every operation, and a description of every parameter in queries and headers", () => {
    expect(operations.length).toBeGreaterThan(80)
    expect(operations.filter(([, { summary }]) => summary === undefined).map(([name]) => name)).toEqual([])
    const bare = operations.flatMap(([name, { parameters }]) =>
      parameters
        .filter((one) => one.in !== "path" && !/^(?!an? ).{15,}/.test(one.description ?? ""))
        .map((one) => `${name}: ${one.name}: ${one.description}`)
    )
    expect(bare).toEqual([])
  })

  it("says where the service is, and tells the bearers apart", () => {
    expect(document.servers).toEqual([{ url: "/" }])
    const { securitySchemes } = document.components
    expect(Object.keys(securitySchemes).toSorted()).toEqual([
      "api_key",
      "client_token",
      "operator_token",
      "scim_token",
      "user_token",
      "user_token_or_api_key",
      "x_api_key"
    ])
    expect(new Set(Object.values(securitySchemes).map(({ description }) => description)).size).toBe(7)
  })

  it("has the Idempotency-Key on every metered POST, and on no other but the transfer, which requires it", () => {
    const keyed = operations.filter(([, { parameters }]) => parameters.some(({ name }) => name === "Idempotency-Key"))
    const due = operations.filter(([name, operation]) => name.startsWith("POST") && isMetered(operation))
    const transfer = "POST /v1/tenants/{tenant_id}/billing/transfers"
    const names = (some: typeof operations) => some.map(([name]) => name).toSorted()
    expect(names(keyed)).toEqual([...names(due), transfer].toSorted())
    expect(due.length).toBeGreaterThanOrEqual(11)
    for (const [name, { parameters }] of keyed) {
      expect([name, parameters.find((one) => one.name === "Idempotency-Key")!.required]).toEqual([
        name,
        name === transfer
      ])
    }
  })

  it("speaks of no shape that the service does not answer", () => {
    const text = JSON.stringify(document.paths)
    expect(text).not.toContain("HttpApiDecodeError")
    expect(Object.keys(document.paths["/v1/chat/completions"]!.post!.responses["200"]!.content!)).toEqual([
      "application/json",
      "text/event-stream"
    ])
  })
})

/** The head of a picture, which is all that is looked at. */
const picture = new Blob([Buffer.from("89504e470d0a1a0a", "hex")])

/** A silent second. */
const audio = (): Blob => {
  const wave = Buffer.alloc(16_044)
  wave.write("RIFF", 0)
  wave.write("WAVEfmt ", 8)
  return new Blob([wave])
}

describe("the levers of the sandbox", () => {
  it("are listed where GET /v1/sandbox points, and stand in the document with the same address", async () => {
    const { control } = await service.sandbox()
    const { levers } = (await service.call(control)).body as {
      levers: ReadonlyArray<{ method: string; url: string; does: string; query?: object; body?: unknown }>
    }
    const origin = new URL(control).origin
    const listed = levers.map(({ method, url }) => `${method} ${url.slice(origin.length)}`)
    for (const due of [
      "POST /control/faults",
      "DELETE /control/faults",
      "POST /control/clock",
      "POST /control/media",
      "GET /control/mail",
      "DELETE /control/mail",
      "GET /control/calls",
      "DELETE /control/calls",
      "POST /control/credit",
      "POST /control/tenants/{tenant_id}",
      "GET /control/webhooks",
      "POST /control/webhooks/{event_id}",
      "POST /issuer/token"
    ]) {
      expect(listed).toContain(due)
    }
    expect(
      levers.filter(({ body, does, method }) => does.length < 12 && (method !== "POST" || body !== undefined))
    ).toEqual([])
    const documented = Object.entries(document.paths)
      .filter(([, item]) => (item as AtAddress).servers?.[0]?.url === origin)
      .flatMap(([path, item]) =>
        Object.keys(item)
          .filter((method) => method !== "servers")
          .map((method) => `${method.toUpperCase()} ${path}`)
      )
    expect(documented.toSorted()).toEqual(listed.toSorted())
    expect((await service.call("/docs")).body).toContain("/control/faults")
    // A page of this machine may use them, as /docs does; no other may.
    for (const [origin, allowed] of [
      [service.url, service.url],
      ["https://example.com", null]
    ] as const) {
      const headers = {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type"
      }
      const asked = await service.call(`${control}/clock`, { method: "OPTIONS", headers })
      expect([origin, asked.headers.get("access-control-allow-origin")]).toEqual([origin, allowed])
    }
  })
})

describe("the examples", () => {
  /** What stands for `{name}` in paths and examples. */
  const known: Record<string, string> = {}

  const filled = (value: unknown): unknown => {
    if (typeof value === "string") {
      return value.replace(/^\{(\w+)\}$/, (_, name: string) => {
        if (known[name] === undefined) throw new Error(`the test knows no ${name}`)
        return known[name]
      })
    }
    if (Array.isArray(value)) return value.map(filled)
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, filled(inner)]))
  }

  const send = async (
    name: string,
    bearer: string | undefined,
    headers: Record<string, string> = {}
  ): Promise<Answer> => {
    const [method, path] = name.split(" ") as [string, string]
    const { parameters, requestBody } = document.paths[path]![method.toLowerCase()]!
    const query = new URLSearchParams()
    const sent: Record<string, string> = { ...headers }
    for (const { example, in: place, name: parameter, required } of parameters) {
      if (place === "path") continue
      if (example === undefined) expect([name, parameter, required]).toEqual([name, parameter, false])
      else if (place === "query") query.set(parameter, String(filled(example)))
      else sent[parameter] = String(filled(example))
    }
    const { servers = [{ url: service.url }] } = document.paths[path] as AtAddress
    const address = `${servers[0]!.url}${path.replace(/\{(\w+)\}/g, (whole) => encodeURIComponent(String(filled(whole))))}?${query}`
    const token = bearer === undefined ? {} : { token: bearer }
    const content = requestBody?.content ?? {}
    if ("multipart/form-data" in content) {
      const form = new FormData()
      if (path.endsWith("/images/edits")) form.set("image", picture, "picture.png")
      else form.set("file", audio(), "speech.wav")
      for (const [name, value] of Object.entries(content["multipart/form-data"]?.example ?? {})) form.set(name, value)
      const response = await fetch(address, {
        method,
        body: form,
        headers: { ...sent, authorization: `Bearer ${bearer}` }
      })
      return { status: response.status, headers: response.headers, body: await response.json() }
    }
    if (requestBody === undefined) return service.call(address, { method, ...token, headers: sent })
    const csv = content["text/csv"]?.example
    if (typeof csv === "string") {
      return service.call(address, { method, ...token, raw: csv, headers: { ...sent, "content-type": "text/csv" } })
    }
    const example = content["application/json"]?.example
    expect([name, example]).not.toEqual([name, undefined])
    return service.call(address, { method, ...token, headers: sent, json: filled(example) })
  }

  /** Not to be called by an example: a browser's pages, files, and the processor's own events. */
  const others = new Set([
    "GET /oauth/authorize",
    "POST /console/operator/session",
    "DELETE /console/operator/session",
    "POST /oauth/authorize",
    "POST /oauth/device",
    "POST /oauth/signed-in",
    "GET /oauth/signed-in/{provider}",
    "GET /oauth/link",
    "POST /oauth/link",
    "GET /oauth/continue",
    "GET /console/sign-in/{provider}",
    "POST /console/session",
    "DELETE /console/session",
    "POST /console/passkeys/challenge",
    "POST /console/passkeys/sign-in",
    "POST /v1/me/passkeys/options",
    "POST /v1/me/passkeys",
    "DELETE /v1/me/passkeys/{passkey_id}",
    "DELETE /v1/operator/people/{account_id}/passkeys/{passkey_id}",
    "GET /v1/events",
    // A sandbox has no configuration file.
    "POST /v1/operator/reload",
    // It names no vendor whose bills are compared.
    "GET /v1/operator/reconciliations/{vendor}/{day}",
    "GET /v1/operator/events",
    // The tenant has no balance at the end of a day yet.
    "GET /v1/tenants/{tenant_id}/billing/liabilities",
    "POST /v1/webhooks/stripe",
    "GET /issuer/authorize",
    "POST /issuer/authorize",
    "GET /payments-page/{id}",
    "GET /files/images/{name}",
    "GET /files/media/{name}"
  ])

  it("work when they are sent, with the charge in the header where the document says so", async () => {
    const { client_id, issuer, oauth_client, service_client_id } = (await service.call("/v1/sandbox")).body
    const ada = await service.signIn("ada@example.com")
    const bob = await service.signIn("bob@example.com")
    const issued = async (email: string): Promise<string> => {
      const answer = await fetch(`${issuer}/token`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ email })
      })
      return ((await answer.json()) as { id_token: string }).id_token
    }
    const ok = async (path: string, call: Parameters<Service["call"]>[1]) => {
      const answer = await service.call(path, call)
      expect([path, answer.status, answer.body]).toMatchObject([path, expect.toSatisfy((s: number) => s < 300), {}])
      return answer.body.result ?? answer.body
    }
    await service.control("/credit", { tenant_id: ada.tenant_id, amount: 100, source: "purchase" })
    const team = (await ok("/v1/tenants", { token: ada.token, json: { name: "Team" } })).id
    await service.control(`/tenants/${team}`, { plan: "team" })
    const application = await ok(`/v1/tenants/${ada.tenant_id}/applications`, {
      token: ada.token,
      json: { name: "key" }
    })
    const invite = (email: string) =>
      ok(`/v1/tenants/${team}/invites`, { token: ada.token, json: { email, role: "member" } })
    await invite(bob.email)
    await ok(`/v1/tenant-invites/${await linkTo(service, bob.email)}/accept`, { method: "POST", token: bob.token })
    const gift = async (key: string, to: string) =>
      (
        await ok(`/v1/tenants/${ada.tenant_id}/billing/transfers`, {
          token: ada.token,
          headers: { "idempotency-key": key },
          json: { amount: 1, recipient_email: to, kind: "gift" }
        })
      ).id as string
    const { checkout_url } = await ok(`/v1/tenants/${ada.tenant_id}/billing/checkout`, {
      token: ada.token,
      json: { amount_credits: 5 }
    })
    // Opening the sandbox's page pays, and stores a card that can be charged.
    await fetch(checkout_url)
    const { payment_methods } = await ok(`/v1/tenants/${ada.tenant_id}/billing/payment-methods`, { token: ada.token })
    const job = async (path: string, json: object) => (await ok(path, { token: ada.token, json })).request_id as string
    const call = await ok("/v1/chat/completions", {
      token: ada.token,
      json: { model: "auto", messages: [{ role: "user", content: "hello" }] }
    })
    expect(call.choices).toHaveLength(1)
    const records = await ok(`/v1/tenants/${ada.tenant_id}/usage`, { token: ada.token })
    Object.assign(known, {
      client_id,
      service_client_id,
      provider: "google",
      oauth_client_id: oauth_client.client_id,
      redirect_uri: oauth_client.redirect_uri,
      tenant_id: ada.tenant_id,
      account_id: ada.account_id,
      application_id: application.id,
      payment_method_id: payment_methods.find(({ id }: { id: string }) => id !== "pm_card_declined").id,
      usage_id: records.records[0].id,
      number: "1",
      vendor: "sandbox",
      media_model: "sandbox-video",
      image_request_id: await job("/v1/images/generate", { prompt: "a hill" }),
      media_request_id: await job("/v1/tools/media/generate", { model: "sandbox-video", prompt: "a hill" })
    })
    await expect
      .poll(async () => (await ok(`/v1/tools/media/status?request_id=${known.media_request_id}`, ada)).settled, {
        timeout: 20_000,
        interval: 500
      })
      .toBe(true)

    /** What an operation finds when its turn comes, where it is not what all find; and who sends it. */
    const before: Record<string, () => Promise<string | void>> = {
      "POST /v1/auth/google": async () => void (known.id_token = await issued("new@example.com")),
      "POST /v1/auth/microsoft": async () => void (known.id_token = await issued("newer@example.com")),
      "POST /v1/auth/{provider}": async () => void (known.id_token = await issued("newest@example.com")),
      "POST /v1/auth/oauth/token": async () => {
        const request = document.paths["/v1/auth/oauth/code"]!.post!.requestBody!.content["application/json"]!.example
        known.code = (await ok("/v1/auth/oauth/code", { token: ada.token, json: filled(request) })).code
      },
      "POST /v1/tools/media/cancel": async () =>
        void (known.media_request_id = await job("/v1/tools/media/generate", {
          model: "sandbox-video",
          prompt: "a lake"
        })),
      "POST /v1/web/contact": async () =>
        (await ok("/v1/web/client-token", { json: { service_client_id } })).token as string
    }
    const refresh = async () => void (known.refresh_token = (await service.signIn("ada@example.com")).refresh_token)
    for (const path of ["token", "google/refresh", "microsoft/refresh", "{provider}/refresh", "revoke"])
      before[`POST /v1/auth/${path}`] = refresh
    const ofTeam = async () => {
      known.tenant_id = team
      known.account_id = bob.account_id
    }
    for (const name of [
      "GET /v1/tenants/{tenant_id}/usage/team",
      "GET /v1/tenants/{tenant_id}/usage/team/series",
      "PATCH /v1/tenants/{tenant_id}/members/{account_id}",
      "GET /v1/tenants/{tenant_id}/members"
    ]) {
      before[name] = ofTeam
    }
    before["DELETE /v1/tenants/{tenant_id}/members/{account_id}"] = ofTeam
    before["DELETE /v1/tenants/{tenant_id}/invites/{invite_id}"] = async () => {
      known.tenant_id = team
      known.invite_id = (await invite("carol@example.com")).id
    }
    before["POST /v1/tenant-invites/{token}/accept"] = async () => {
      const dora = await service.signIn("dora@example.com")
      await invite(dora.email)
      known.token = await linkTo(service, dora.email)
      return dora.token
    }
    before["GET /v1/tenant-invites/{token}"] = async () => {
      await invite("ivy@example.com")
      known.token = await linkTo(service, "ivy@example.com")
    }
    const logged = async () => {
      const path = `/v1/usage/${known.usage_id}/receipt`
      await expect.poll(async () => (await service.call(path, { token: ada.token })).status).toBe(200)
    }
    before["GET /v1/usage/{usage_id}/receipt"] = logged
    before["GET /v1/tenants/{tenant_id}/billing/ledger/{number}/receipt"] = logged
    before["GET /v1/log/liabilities"] = async () =>
      expect.poll(async () => (await service.call("/v1/log/liabilities")).status, { timeout: 20_000 }).toBe(200)
    let gifts = 0
    const sentTo = (email: string) => async () =>
      void (known.transfer_id = await gift(`example-transfer-${++gifts}`, email))
    before["DELETE /v1/tenants/{tenant_id}/billing/transfers/{transfer_id}"] = sentTo("erin@example.com")
    before["POST /v1/tenants/{tenant_id}/billing/transfers/{transfer_id}/resend"] = sentTo("finn@example.com")
    for (const move of ["accept", "decline"]) {
      before[`POST /v1/transfers/{transfer_id}/${move}`] = async () => {
        await sentTo(bob.email)()
        return bob.token
      }
    }
    before["GET /v1/transfers/{transfer_id}"] = sentTo(bob.email)
    const invited = async () => {
      const who = await service.signIn(`invited${++gifts}@example.com`)
      await sentTo(who.email)()
      known.token = await linkTo(service, who.email)
      return who.token
    }
    before["GET /v1/transfer-invites/{token}"] = invited
    before["POST /v1/transfer-invites/{token}/attach"] = invited
    before["POST /v1/notifications/{id}/read"] = async () => {
      const page = await ok("/v1/notifications", { token: ada.token })
      known.id = page.records[0].id
    }
    before["POST /control/media"] = async () =>
      void (known.media_request_id = await job("/v1/tools/media/generate", {
        model: "sandbox-video",
        prompt: "a wood"
      }))
    const events = async () =>
      (await service.control("/webhooks")) as ReadonlyArray<{
        id: string
        event: { data: { object: { payment_intent?: string } } }
      }>
    before["POST /control/webhooks/{event_id}"] = async () => void (known.event_id = (await events())[0]!.id)
    before["POST /control/payments/{payment_id}/{what}"] = async () => {
      known.payment_id = (await events()).map(({ event }) => event.data.object.payment_intent).find((id) => id != null)!
      known.what = "refund"
    }
    before["POST /v1/runs"] = async () => application.api_key as string
    for (const method of ["GET", "DELETE"]) {
      before[`${method} /v1/runs/{run_id}`] = async () => {
        const made = await ok("/v1/runs", { token: application.api_key, json: { limit: { usd: 1 } } })
        known.run_id = made.id
      }
    }
    before["GET /v1/models/{id}"] = async () => void (known.id = "sandbox-small")
    before["DELETE /v1/tenants/{tenant_id}/applications/{application_id}"] = async () => {
      known.application_id = (
        await ok(`/v1/tenants/${ada.tenant_id}/applications`, { token: ada.token, json: { name: "gone" } })
      ).id
    }

    const dana = await service.signIn("dana@example.com")
    const ofDana = async () => {
      known.tenant_id = dana.tenant_id
      known.account_id = dana.account_id
      known.application_id = (
        await ok(`/v1/tenants/${ada.tenant_id}/applications`, { token: ada.token, json: { name: "revoked" } })
      ).id
    }
    for (const [name] of operations) if (name.includes(" /v1/operator/")) before[name] = ofDana
    known.session_id = "ops_none"
    const operator = (
      await commandHere(["operator", "--token"], { DATA_DIR: service.folder, PORT: String(service.port) })
    ).stdout.trim()
    const allowance = async () => {
      await ofDana()
      const json = { amount_usd: 1, period: "week" }
      await ok(`/v1/operator/tenants/${dana.tenant_id}/allowance`, { method: "PUT", token: operator, json })
    }
    for (const method of ["GET", "DELETE"]) before[`${method} /v1/operator/tenants/{tenant_id}/allowance`] = allowance
    const voucher = async () => {
      const { vouchers } = await ok("/v1/operator/vouchers", { token: operator, json: { amount_usd: 1 } })
      known.voucher_id = vouchers[0].id
      known.voucher_code = vouchers[0].code
    }
    before["POST /v1/vouchers/redeem"] = voucher
    before["DELETE /v1/operator/vouchers/{voucher_id}"] = voucher
    const budget = (path: string, token: string, scope?: string) => async () => {
      const json = { name: "example", limit: { usd: 5 }, period: "day", ...(scope !== undefined && { scope }) }
      known.budget_id = (await ok(path, { token, json })).id
    }
    for (const way of ["GET", "PATCH", "DELETE", "POST"]) {
      const below = `budgets/{budget_id}${way === "POST" ? "/raise" : ""}`
      before[`${way} /v1/tenants/{tenant_id}/${below}`] = budget(`/v1/tenants/${ada.tenant_id}/budgets`, ada.token)
      before[`${way} /v1/operator/${below}`] = budget("/v1/operator/budgets", operator, "everyone")
    }
    before["DELETE /v1/operator/management-keys/{key_id}"] = async () => {
      const json = { name: "gone", scopes: ["read"], expires_at: "2027-06-01T00:00:00Z" }
      known.key_id = (await ok("/v1/operator/management-keys", { token: operator, json })).id
    }
    /** Each of these examples has a person, a tenant or a key of its own. */
    const provisioned = {
      people: { email: "example@example.com", name: "Example" },
      tenants: { name: "Example", owner_email: "example@example.com" },
      keys: { person_external_id: "owner", name: "example" }
    }
    const put = (kind: string, id: string, json: object) =>
      ok(`/v1/operator/${kind}/by-external-id/${id}`, { method: "PUT", token: operator, json })
    for (const [kind, json] of Object.entries(provisioned))
      for (const method of ["GET", "PUT", "DELETE"])
        before[`${method} /v1/operator/${kind}/by-external-id/{external_id}`] = async () => {
          known.external_id = `${method.toLowerCase()}-${kind}`
          await put("people", "owner", provisioned.people)
          await put("people", "student-17", { email: "student@example.com", name: "Student" })
          await put("people", "grace", { email: "grace@example.com", name: "Grace" })
          if (method !== "PUT") await put(kind, kind === "people" ? "owner" : known.external_id, json)
          if (kind === "people") known.external_id = method === "PUT" ? "grace" : "owner"
        }

    let asked = 0
    const wrong: Array<unknown> = []
    for (const [name, operation] of operations) {
      // A sandbox has no directory.
      if (others.has(name) || name.includes(" /scim/v2/")) continue
      known.tenant_id = ada.tenant_id
      known.account_id = ada.account_id
      const own = await before[name]?.()
      const scheme = Object.keys(operation.security[0] ?? {})[0]
      const bearers: Record<string, string> = { api_key: application.api_key, operator_token: operator }
      const bearer = own ?? (scheme === undefined ? undefined : (bearers[scheme] ?? ada.token))
      const key = `example-call-of-${String(asked++).padStart(4, "0")}`
      const isKeyed = name.startsWith("POST") && isMetered(operation)
      const answer = await send(name, bearer, isKeyed ? { "Idempotency-Key": key } : {})
      if (answer.status < 200 || answer.status > 299) wrong.push([name, answer.status, answer.body])
      const saysCharge = operation.responses["200"]?.headers?.["X-Charge-Usd"] !== undefined
      if (answer.headers.has("x-charge-usd") !== saysCharge) wrong.push([name, "x-charge-usd", saysCharge])
      if (isKeyed) {
        const again = await send(name, bearer, { "Idempotency-Key": key })
        if (again.headers.get("idempotency-replayed") !== "true") wrong.push([name, "was not replayed", again.status])
      }
    }
    expect(wrong).toEqual([])
  })
})
