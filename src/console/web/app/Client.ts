/**
 * The API client, typed by the contract (`Contract.d.ts`). An amount that a double cannot represent exactly arrives as a string with all its digits.
 */
import createClient from "openapi-fetch"
import type { Client } from "openapi-fetch"
import type { components, paths } from "../Contract.d.ts"
import { apiRoot } from "./Base.ts"
import { personSession } from "./PersonSession.ts"
import { fetchResponse, Refusal, SignedOut } from "./Refusal.ts"
import type { Grant, Session } from "./Session.ts"

export type Schemas = components["schemas"]

const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Quotes the numbers in a JSON text that a double cannot represent exactly. */
export const withAllDigits = (json: string): string =>
  /\d(?:\.?\d){15}/.test(json)
    ? json.replace(token, (text) =>
        text.startsWith('"') || text.length < 16 || String(Number(text)) === text ? text : `"${text}"`
      )
    : json

/** Sends a request with the session's token. After a 401, renews the token and retries once. Rejects with `SignedOut` if there is no session. */
export const fetchWith =
  <G extends Grant, To>(session: Session<G, To>) =>
  async (request: Request): Promise<Response> => {
    const retryRequest = request.clone()
    const firstToken = await session.token()
    const response = await send(request, firstToken)
    if (response.status !== 401) return response
    await session.refused(firstToken)
    return send(retryRequest, await session.token())
  }

const send = (request: Request, bearer: string): Promise<Response> => {
  request.headers.set("authorization", `Bearer ${bearer}`)
  return fetchResponse(request)
}

const hasJsonBody = (response: Response): boolean =>
  response.headers.get("content-type")?.startsWith("application/json") ?? false

const clientBy = (fetch: (request: Request) => Promise<Response>): Client<paths> => {
  const client = createClient<paths>({ baseUrl: apiRoot, credentials: "omit", fetch })
  client.use({
    onResponse: async ({ response }) => {
      if (!hasJsonBody(response)) return undefined
      const { headers, status, statusText } = response
      return new Response(withAllDigits(await response.text()), { headers, status, statusText })
    }
  })
  return client
}

export const clientWith = <G extends Grant, To>(session: Session<G, To>): Client<paths> => clientBy(fetchWith(session))

/** Sends requests as the signed-in user. */
export const api = clientWith(personSession)

/** Sends requests without a credential, for public routes. */
export const publicApi = clientBy(fetchResponse)

interface ApiResponse<A> {
  readonly data?: A
  readonly error?: unknown
  readonly response: Response
}

/** Returns the response body. Rejects with `Refusal` on an error response. */
export const responseBody = async <A>(answer: Promise<ApiResponse<A>>): Promise<A> => {
  const { data, error, response } = await answer
  if (response.ok) return data as A
  throw new Refusal(
    response.status,
    typeof error === "object" && error !== null ? error : {},
    response.headers.get("x-request-id") ?? undefined
  )
}

/** Returns the `result` field of a response envelope. Rejects with `Refusal` on an error response. */
export const resultOf = async <A>(answer: Promise<ApiResponse<{ readonly result: A }>>): Promise<A> =>
  (await responseBody(answer)).result

/** Returns this tab's tenant. Throws `SignedOut` if the user is not signed in. */
export const tenantId = (): string => {
  const { state } = personSession
  if (state.kind !== "open") throw new SignedOut()
  return state.grant.tenant_id
}
