/**
 * The client of the API, typed by the contract (`Contract.d.ts`). `asked` turns answers into values and refusals into `Refusal`. Amounts that a
 * double cannot hold arrive as strings with all digits.
 */
import createClient from "openapi-fetch"
import type { Client } from "openapi-fetch"
import type { components, paths } from "../Contract.d.ts"
import { apiRoot } from "./Base.ts"
import { personSession } from "./PersonSession.ts"
import { reached, Refusal, SignedOut } from "./Refusal.ts"
import type { Grant, Session } from "./Session.ts"

export type Schemas = components["schemas"]

const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** JSON with quotes around numbers whose digits a double would lose. */
export const withAllDigits = (json: string): string =>
  /\d(?:\.?\d){15}/.test(json)
    ? json.replace(token, (text) =>
        text.startsWith('"') || text.length < 16 || String(Number(text)) === text ? text : `"${text}"`
      )
    : json

/**
 * A request with the session's token, retried once with the next token if the first was refused. Fails with `SignedOut` when the session has ended.
 */
export const fetchWith =
  <G extends Grant, To>(session: Session<G, To>) =>
  async (request: Request): Promise<Response> => {
    const again = request.clone()
    const first = await session.token()
    const response = await send(request, first)
    if (response.status !== 401) return response
    await session.refused(first)
    return send(again, await session.token())
  }

const send = (request: Request, bearer: string): Promise<Response> => {
  request.headers.set("authorization", `Bearer ${bearer}`)
  return reached(request)
}

const isJson = (response: Response): boolean =>
  response.headers.get("content-type")?.startsWith("application/json") ?? false

const clientBy = (fetch: (request: Request) => Promise<Response>): Client<paths> => {
  const client = createClient<paths>({ baseUrl: apiRoot, credentials: "omit", fetch })
  client.use({
    onResponse: async ({ response }) => {
      if (!isJson(response)) return undefined
      const { headers, status, statusText } = response
      return new Response(withAllDigits(await response.text()), { headers, status, statusText })
    }
  })
  return client
}

export const clientWith = <G extends Grant, To>(session: Session<G, To>): Client<paths> => clientBy(fetchWith(session))

/** As the signed-in person. */
export const api = clientWith(personSession)

/** Without a credential, for public routes. */
export const openApi = clientBy(reached)

interface Answered<A> {
  readonly data?: A
  readonly error?: unknown
  readonly response: Response
}

/** The answer of a call; fails with `Refusal`. */
export const asked = async <A>(answer: Promise<Answered<A>>): Promise<A> => {
  const { data, error, response } = await answer
  if (response.ok) return data as A
  throw new Refusal(
    response.status,
    typeof error === "object" && error !== null ? error : {},
    response.headers.get("x-request-id") ?? undefined
  )
}

/** The `result` of an envelope. */
export const resultOf = async <A>(answer: Promise<Answered<{ readonly result: A }>>): Promise<A> =>
  (await asked(answer)).result

/** The tenant of this tab. Only for components that require a signed-in person. */
export const tenantId = (): string => {
  const { state } = personSession
  if (state.kind !== "open") throw new SignedOut()
  return state.grant.tenant_id
}
