/** The log of charges over the database of a scene. */
import { Layer } from "effect"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { ChargeLog } from "../../../src/books/log/ChargeLog.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import * as Scene from "../../money/usage/Scene.ts"

/** A log that names itself after this address, with a secret of equal bytes. */
export const logOf = (public_url: string, secret = 1) =>
  Layer.fresh(ChargeLog.layer).pipe(
    Layer.provide(ServiceInfo.layer({ service_name: "Tollgate", key_prefix: "svc", public_url })),
    Layer.provide(DeploymentSecret.layer(new Uint8Array(32).fill(secret)))
  )

export const log = logOf("https://pay.example.com/gate")

export const layer = Layer.provideMerge(log, Scene.layer)
