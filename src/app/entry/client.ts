/** `tollgate/client`: the typed client, derived from the contract. */
import { HttpApiClient, HttpClient, HttpClientResponse } from "@effect/platform"
import type { HttpApi } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { problemBodyIn } from "../../http/contract/Annotations.ts"
import "./contracts.ts"

export { Api }

type Methods =
  typeof Api extends HttpApi.HttpApi<infer _Id, infer Groups, infer E, infer _R>
    ? HttpApiClient.Client<Groups, E, never>
    : never

/** The client's methods, by group. The type has a name because the compiler cannot serialize its full declaration. */
export interface Client extends Methods {}

/** Creates a client for the service at `baseUrl`. Its methods correspond to the routes and fail with the documented errors. */
export const make = (baseUrl: string): Effect.Effect<Client, never, HttpClient.HttpClient> =>
  HttpApiClient.make(Api, { baseUrl, transformClient: HttpClient.transformResponse(Effect.flatMap(unshaped)) })

/** Converts a refusal from a protocol's own format to the problem that the contract declares. */
const unshaped = (response: HttpClientResponse.HttpClientResponse) =>
  response.status < 400
    ? Effect.succeed(response)
    : Effect.map(response.text, (text) =>
        HttpClientResponse.fromWeb(
          response.request,
          new Response(plainly(text), { status: response.status, headers: response.headers })
        )
      )

const plainly = (text: string): string => {
  try {
    const body = problemBodyIn(JSON.parse(text))
    return body === undefined ? text : JSON.stringify(body)
  } catch {
    return text
  }
}
