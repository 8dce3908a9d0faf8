/** `tollgate/client`: the typed client, derived from the one contract. */
import { HttpApiClient } from "@effect/platform"
import { Api } from "../Api.ts"
import "./contracts.ts"

export { Api }

/** A client of a service at this address; its methods are the routes, its errors the documented ones. */
export const make = (baseUrl: string) => HttpApiClient.make(Api, { baseUrl })
