/**
 * Uses a deployment briefly over HTTP, in a way that works with any version: users, keys, calls, purchases, transfers, a team. Also records each
 * user's responses, which all later versions must reproduce.
 */
import { lettersTo } from "../../test/support/mail.ts"
import type { Answer, Call, Person, Service } from "../../test/support/Service.ts"

/** The time of this use. The upgrade tests set their clock to it. */
export const year = Date.UTC(2050, 5, 15, 12)

export interface Figures {
  /** The commit that created the fixture, its newest migration, and its last moment. */
  readonly commit: string
  readonly migration: number
  readonly at: string
  readonly people: Readonly<Record<string, Person & { readonly key: string }>>
  readonly team_id: string
  /** The body of each response, with its request's user and path. */
  readonly answers: ReadonlyArray<{ readonly who: string; readonly path: string; readonly body: unknown }>
}

type Cast = Readonly<Record<"ada" | "bob" | "grace", Person & { readonly key: string }>>

const must = async (service: Service, path: string, call: Call): Promise<Answer> => {
  const answer = await service.call(path, call)
  if (answer.status > 299) throw new Error(`${path} returned ${answer.status}: ${JSON.stringify(answer.body)}`)
  return answer
}

const chat = (text: string, more: object = {}) => ({
  model: "sandbox-small",
  messages: [{ role: "user", content: text }],
  ...more
})

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const waitUntil = async (is: () => Promise<boolean>): Promise<void> => {
  for (let tries = 0; !(await is()); tries++) {
    if (tries === 200) throw new Error("the expected change did not happen")
    await pause(100)
  }
}

/** Uses the deployment and returns the users and their team. */
export const lead = async (service: Service): Promise<{ cast: Cast; team_id: string }> => {
  await service.control("/clock", { advance_ms: year - Date.now() })
  const person = async (name: string) => {
    const signedIn = await service.signIn(`${name}@example.com`, { name })
    return { ...signedIn, key: await service.key(signedIn) }
  }
  const cast: Cast = { ada: await person("ada"), bob: await person("bob"), grace: await person("grace") }
  await buy(service, cast.ada)
  await call(service, cast.ada)
  await send(service, cast)
  const team_id = await pool(service, cast)
  await configure(service, cast.ada)
  await waitUntilQuiet(service)
  return { cast, team_id }
}

const buy = async (service: Service, { tenant_id, token }: Person): Promise<void> => {
  const { checkout_url } = (
    await must(service, `/v1/tenants/${tenant_id}/billing/checkout`, { token, json: { amount_credits: 40 } })
  ).body.result
  // In the sandbox, opening the checkout page pays.
  await fetch(checkout_url)
  await waitUntil(async () => (await service.balance({ tenant_id, token } as Person)) >= 40)
}

const call = async (service: Service, { key: token, ...ada }: Cast["ada"]): Promise<void> => {
  for (let words = 1; words <= 5; words++)
    await must(service, "/v1/chat/completions", { token, json: chat("word ".repeat(words)) })
  await must(service, "/v1/chat/completions", {
    token: ada.token,
    json: chat("by a person", { model: "sandbox-large" })
  })
  await must(service, "/v1/chat/completions", { token, json: chat("in a stream", { stream: true }) })
  const headers = { "idempotency-key": "once-and-for-all-0001" }
  await must(service, "/v1/chat/completions", { token, headers, json: chat("once") })
  await must(service, "/v1/speech", {
    token,
    json: { input: "The tide is in.", model: "tts-1", voice: "alloy", response_format: "mp3" }
  })
  await must(service, "/v1/search?query=tide", { token })
  await service.control("/faults", { service: "chat", status: 500, times: 1 })
  await service.call("/v1/chat/completions", { token, json: chat("in vain") })
  const { body } = await must(service, "/v1/tools/media/generate", {
    token,
    json: { model: "sandbox-video", prompt: "a hill" }
  })
  const { request_id } = body.result ?? body
  await service.control("/media", { request_id, status: "COMPLETED" })
  await waitUntil(async () => {
    const { body } = await must(service, `/v1/tools/media/status?request_id=${request_id}`, { token })
    return (body.result ?? body).settled
  })
}

const send = async (service: Service, { ada, bob, grace }: Cast): Promise<void> => {
  let made = 0
  const sent = async (to: string, amount: number) => {
    const headers = { "idempotency-key": `transfer-number-${String(++made).padStart(4, "0")}` }
    const json = { amount, recipient_email: to, kind: "gift", reason: "thanks", message: "For the review" }
    return (await must(service, `/v1/tenants/${ada.tenant_id}/billing/transfers`, { token: ada.token, headers, json }))
      .body.result.id as string
  }
  const moved = async (id: string, move: string, who: Person) =>
    must(service, `/v1/transfers/${id}/${move}`, { method: "POST", token: who.token })
  await moved(await sent(bob.email, 3), "accept", bob)
  await moved(await sent(grace.email, 2), "decline", grace)
  await sent(bob.email, 1.5)
  await sent("nobody.yet@example.com", 0.25)
}

/** Waits for an email with a team invitation and returns the token. */
const invitationTo = async (service: Service, email: string): Promise<string> => {
  let token: string | undefined
  await waitUntil(async () => {
    const letters = await lettersTo(service, email)
    token = letters
      .map(({ text }) => /(?<!transfer-)invites\/([0-9a-f]{64})/.exec(text)?.[1])
      .find((one) => one !== undefined)
    return token !== undefined
  })
  return token!
}

const pool = async (service: Service, { ada, bob }: Cast): Promise<string> => {
  const team_id = (await must(service, "/v1/tenants", { token: ada.token, json: { name: "Team" } })).body.result
    .id as string
  await service.control(`/tenants/${team_id}`, { plan: "team" })
  await service.control("/credit", { tenant_id: team_id, amount: 10, source: "admin" })
  await must(service, `/v1/tenants/${team_id}/invites`, {
    token: ada.token,
    json: { email: bob.email, role: "member" }
  })
  const token = await invitationTo(service, bob.email)
  await must(service, `/v1/tenant-invites/${token}/accept`, { method: "POST", token: bob.token })
  const pinned = { mode: "pinned", billing_account_id: `bil_${team_id.slice(4)}` }
  await must(service, "/v1/me/billing-source", { method: "PUT", token: bob.token, json: pinned })
  await must(service, "/v1/chat/completions", { token: bob.token, json: chat("the team pays") })
  return team_id
}

const configure = async (service: Service, { tenant_id, token }: Person): Promise<void> => {
  const json = {
    auto_reload: { enabled: false, threshold_usd: 5, amount_credits: 25 },
    alerts: { enabled: true, warn_threshold_usd: 2, rearm_threshold_usd: 4 }
  }
  await must(service, `/v1/tenants/${tenant_id}/billing/auto-reload`, { method: "PUT", token, json })
  await must(service, `/v1/tenants/${tenant_id}/billing`, {
    method: "PATCH",
    token,
    json: { billing_emails: ["billing@example.com"] }
  })
}

/** Waits two seconds for pending emails, and then until no credit is reserved. */
const waitUntilQuiet = async (service: Service): Promise<void> => {
  await pause(2_000)
  await waitUntil(async () => !/^tollgate_reserved_usd (?!0$)/m.test((await service.call("/metrics")).body as string))
}

// ---- responses -------------------------------------------------------------------------------------------------------------------

const pathsOf = ({ tenant_id }: Person): ReadonlyArray<string> => [
  "/v1/me",
  "/v1/me/memberships",
  "/v1/me/billing-sources",
  "/v1/me/billing-sources/capacity",
  "/v1/transfers?per_page=200",
  "/v1/notifications?per_page=200",
  `/v1/tenants/${tenant_id}/applications?per_page=200`,
  `/v1/tenants/${tenant_id}/billing`,
  `/v1/tenants/${tenant_id}/billing/credits`,
  `/v1/tenants/${tenant_id}/billing/auto-reload`,
  `/v1/tenants/${tenant_id}/billing/ledger?per_page=200`,
  `/v1/tenants/${tenant_id}/billing/transfers?per_page=200`,
  `/v1/tenants/${tenant_id}/usage?per_page=200`,
  `/v1/tenants/${tenant_id}/usage/rollup?rollup=daily&start_date=2050-06-01&end_date=2050-06-30`,
  "/v1/usage?start_time=2050-06-01T00:00:00Z&end_time=2050-07-01T00:00:00Z"
]

const ofTeam = (team_id: string): ReadonlyArray<string> => [
  `/v1/tenants/${team_id}/members`,
  `/v1/tenants/${team_id}/plan`,
  `/v1/tenants/${team_id}/usage/team?start_date=2050-06-01&end_date=2050-06-30&rollup=daily`
]

/** Collects each user's responses. */
export const shown = async (
  service: Service,
  cast: Figures["people"],
  team_id: string
): Promise<Figures["answers"]> => {
  const answers: Array<Figures["answers"][number]> = []
  const ask = async (who: string, path: string, token: string) => {
    const { body, status } = await service.call(path, { token })
    if (status === 200) answers.push({ who, path, body: body.result ?? body })
  }
  for (const [who, person] of Object.entries(cast)) {
    const { tenant_id, token } = person
    for (const path of pathsOf(person)) await ask(who, path, token)
    const records = await service.usage({ tenant_id, token } as Person)
    for (const { id } of records) await ask(who, `/v1/usage/${id}/explain`, token)
  }
  for (const path of ofTeam(team_id)) await ask("ada", path, cast["ada"]!.token)
  return answers
}
