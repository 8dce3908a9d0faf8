import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Layer } from "effect"
const secretBytes = new Uint8Array(32).fill(7)
import * as Database from "tollgate/database"
import { layer, layerSecret, Mail, PriceList, ServiceInfo, Transfers } from "tollgate/transfers"

const books = layer.pipe(
  Layer.provide([
    PriceList.layerNone, // new accounts get no credit
    Mail.layerNone, // no letters are sent
    ServiceInfo.layer({ service_name: "Yours", key_prefix: "yours", public_url: "https://yours.example" }),
    layerSecret(secretBytes)
  ]),
  Layer.provideMerge(Database.layerOver), // beside your own tables; the service's begin with tollgate_
  Layer.provideMerge(SqliteClient.layer({ filename: "/tmp/tollgate-Et3SoK/yours.db" }))
)

await Effect.runPromise(Effect.scoped(Layer.build(books)))
console.log("built")