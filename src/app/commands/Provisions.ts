/** The provisioning service of a command. It has no price list: a person whom a command makes gets no signup credit. */
import { Effect, Layer } from "effect"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { PriceList } from "../../books/prices/PriceList.ts"
import { Allowances } from "../../money/allowances/Allowances.ts"
import { Plans } from "../../money/allowances/Settings.ts"
import type { Operator } from "../../operations/operator/Operator.ts"
import { Provisioning } from "../../operations/provisioning/Provisioning.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { serviceInfo } from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as Secret from "../Secret.ts"
import { database } from "./Database.ts"
import { userName } from "./UserName.ts"

export const provisioningOf = (facts: EnvironmentFacts) =>
  Provisioning.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(Allowances.layer, Applications.layer, Tenants.layer)),
    Layer.provideMerge(Layer.mergeAll(Ledger.layer, Belonging.layer)),
    Layer.provide([Secret.layer(facts), serviceInfo(facts, {}), PriceList.layerNone, Layer.succeed(Plans, {})]),
    Layer.provideMerge(database(facts))
  )

/** The machine's user who runs the command. */
export const commander: Effect.Effect<Operator> = Effect.sync(() => ({ name: userName(), via: "command" }))
