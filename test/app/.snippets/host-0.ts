import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Layer } from "effect"
const secretBytes = new Uint8Array(32).fill(7)
import * as Database from "tollgate/database"
import { layer, layerSecret, Mail, PriceList, ServiceInfo } from "tollgate/transfers"

const transfers = layer.pipe(
  Layer.provide([
    PriceList.layerNone,
    Mail.layerNone,
    ServiceInfo.layer({ service_name: "Yours", key_prefix: "yours", public_url: "https://yours.example" }),
    layerSecret(secretBytes)
  ]),
  Layer.provideMerge(Database.layerOver),
  Layer.provideMerge(SqliteClient.layer({ filename: "/tmp/tollgate-vfOoMi/yours.db" }))
)

await Effect.runPromise(Effect.scoped(Layer.build(transfers)))
console.log("built")