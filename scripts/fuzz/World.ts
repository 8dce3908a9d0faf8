/** Runs the service under test in a separate process with its sandbox, creates its users, and checks its state at rest. */
import { redirect_uri, tokensFor } from "../../test/support/OAuth.ts"
import { command, start } from "../../test/support/Service.ts"
import type { Person, Service } from "../../test/support/Service.ts"
import { routesOf } from "./Document.ts"
import type { OpenApi, Route } from "./Document.ts"
import type { Known } from "./Plan.ts"
import { restOf } from "./Rest.ts"
import type { AtRest } from "./Rest.ts"

export interface World {
  readonly service: Service
  readonly document: OpenApi
  readonly routes: ReadonlyArray<Route>
  /** Returns the values that currently replace a plan's placeholders. */
  readonly known: () => Known
  /** Renews credentials, credit and objects that have been used up. */
  readonly renew: () => Promise<void>
  /** Reports faults at rest and describes resource use. */
  readonly rest: () => Promise<AtRest>
  readonly end: () => Promise<void>
}

export const make = async (): Promise<World> => {
  const service = await start({ env: { LOG_LEVEL: "warning" } })
  const document = (await service.call("/openapi.json")).body as OpenApi
  const old = await service.signIn("old@example.com")
  await service.control("/clock", { advance_ms: 2 * 3_600_000 })
  const people: People = {
    ada: await service.signIn("ada@example.com"),
    bob: await service.signIn("bob@example.com"),
    victim: await service.signIn("victim@example.com")
  }
  let known = await knownOf(service, people, old)
  const atRest = restOf(service)
  return {
    service,
    document,
    routes: routesOf(document),
    known: () => known,
    renew: async () => {
      known = await knownOf(service, people, old)
    },
    rest: atRest,
    end: () => service.discard()
  }
}

interface People {
  ada: Person
  bob: Person
  victim: Person
}

const signedIn = async (service: Service, person: Person): Promise<Person> => {
  const { status } = await service.call("/v1/me", { token: person.token })
  return status === 200 ? person : service.signIn(person.email)
}

const operatorOf = async ({ folder, port }: Service): Promise<string> =>
  (await command(["operator", "--token"], { DATA_DIR: folder, PORT: String(port) })).stdout.trim()

/** Creates the people and objects that requests refer to. */
const knownOf = async (service: Service, people: People, old: Person): Promise<Known> => {
  const operator = await operatorOf(service)
  const { client_id, issuer, oauth_client, service_client_id } = (await service.call("/v1/sandbox")).body
  for (const { account_id, tenant_id } of Object.values(people)) {
    await service.call(`/v1/operator/people/${account_id}/activate`, { token: operator, json: {} })
    await service.call(`/v1/operator/tenants/${tenant_id}/activate`, { token: operator, json: {} })
  }
  for (const name of ["ada", "bob", "victim"] as const) people[name] = await signedIn(service, people[name])
  const { ada, bob, victim } = people
  const result = async (path: string, call: Parameters<Service["call"]>[1]) =>
    (await service.call(path, call)).body?.result
  for (const person of [ada, bob])
    if ((await service.balance(person)) < 100_000)
      await service.control("/credit", { tenant_id: person.tenant_id, amount: 500_000, source: "purchase" })
  await service.call("/v1/me/billing-source", { method: "PUT", token: ada.token, json: { mode: "automatic" } })
  const application = await result(`/v1/tenants/${ada.tenant_id}/applications`, {
    token: ada.token,
    json: { name: "spare" }
  })
  const team = await result("/v1/tenants", { token: ada.token, json: { name: "Team" } })
  const headers = () => ({ "idempotency-key": `known-${Math.random().toString(36).slice(2).padEnd(16, "0")}` })
  const gift = (from: Person, to: string) =>
    result(`/v1/tenants/${from.tenant_id}/billing/transfers`, {
      token: from.token,
      headers: headers(),
      json: { amount: 1, recipient_email: to, kind: "gift" }
    })
  const asked = { token: ada.token, json: { model: "auto", messages: [{ role: "user", content: "hi" }] } }
  const usage_id = (await service.call("/v1/chat/completions", asked)).headers.get("x-usage-id")
  const application_token = (await tokensFor(service, ada, "openid calls")).body?.access_token
  const notifications = await result("/v1/notifications", { token: bob.token })
  const issued = await service.call(`${issuer}/token`, { json: { email: `fresh${Math.random()}@example.com` } })
  const media = await service.call("/v1/tools/media/generate", {
    token: ada.token,
    json: { model: "sandbox-video", prompt: "a hill" }
  })
  const image = await service.call("/v1/images/generate", { token: ada.token, json: { prompt: "a hill" } })
  const ids: Readonly<Record<string, string | null | undefined>> = {
    client_id,
    service_client_id,
    oauth_client_id: oauth_client.client_id,
    redirect_uri,
    tenant_id: ada.tenant_id,
    account_id: ada.account_id,
    other_tenant_id: bob.tenant_id,
    other_account_id: bob.account_id,
    victim_tenant_id: victim.tenant_id,
    victim_account_id: victim.account_id,
    billing_account_id: `bil_${ada.tenant_id.slice(4)}`,
    team_id: team?.id,
    application_id: application?.id,
    transfer_id: (await gift(ada, "bob@example.com"))?.id,
    other_transfer_id: (await gift(bob, "ada@example.com"))?.id,
    invite_token: "0".repeat(64),
    refresh_token: victim.refresh_token,
    usage_id,
    notification_id: notifications?.records?.[0]?.id,
    id_token: issued.body.id_token,
    media_request_id: media.body?.result?.request_id ?? media.body?.request_id,
    image_request_id: image.body?.result?.request_id ?? image.body?.request_id,
    key: await service.key(ada),
    token: ada.token,
    "other person's token": bob.token,
    "operator's token": operator,
    "expired token": old.token,
    "application's token": application_token,
    "client token": (await service.call("/v1/web/client-token", { json: { service_client_id } })).body?.result?.token
  }
  // Remove the sandbox's own records of calls and emails, so that they do not count towards the service's memory.
  await service.control("/calls", undefined, "DELETE")
  await service.control("/mail", undefined, "DELETE")
  return Object.fromEntries(
    Object.entries(ids).map(([name, value]) => [name, value ?? `no_${name.replaceAll(/\W/g, "_")}`])
  )
}
