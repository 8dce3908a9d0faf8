/** Prints the OpenAPI document of the contract. */
import { OpenApi } from "@effect/platform"
import { Api } from "../src/Api.ts"

process.stdout.write(`${JSON.stringify(OpenApi.fromApi(Api), null, 2)}\n`)
