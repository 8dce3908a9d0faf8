/** Provides provisioning for commands. It uses no price list, so a person that a command creates receives no signup credit. */
import { Effect, Layer } from "effect"
import { Ledger } from "../../books/ledger/Ledger.ts"
import { PriceList } from "../../books/prices/PriceList.ts"
import { Allowances } from "../../money/allowances/Allowances.ts"
import { Plans } from "../../money/allowances/Settings.ts"
import type { Operator } from "../../operations/operator/Operator.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import { Mail } from "../../upstream/mail/Mail.ts"
import { Provisioning } from "../../operations/provisioning/Provisioning.ts"
import type { ProvisioningContract } from "../../operations/provisioning/Provisioning.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import * as Config from "../Config.ts"
import { serviceInfo } from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as Secret from "../Secret.ts"
import { database } from "./Database.ts"
import { refuse } from "./Report.ts"
import { userName } from "./UserName.ts"

/**
 * Provides `Provisioning`. `public_url` is the base of the links in emails. The running service sends the emails, so the command needs no mail
 * server.
 */
export const provisioningOf = (facts: EnvironmentFacts, file: Pick<ConfigFile, "service_name" | "public_url"> = {}) =>
  Provisioning.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(Allowances.layer, Applications.layer, Tenants.layer, Outbox.layer)),
    Layer.provideMerge(Layer.mergeAll(Ledger.layer, Belonging.layer)),
    Layer.provide([Secret.layer(facts), PriceList.layerNone, Layer.succeed(Plans, {}), Mail.layerNone]),
    Layer.provide(serviceInfo(facts, file)),
    Layer.provideMerge(database(facts))
  )

/** Reads the configuration of a service that sends emails. Fails if the file does not set `mail`. */
export const mailingConfig = Effect.fnUntraced(function* (path: string, flag: string) {
  const file = yield* Config.readFile(path)
  if (file.mail === undefined) return yield* refuse(`${flag}: ${path} does not set "mail", so no email would be sent`)
  return file
})

/** Identifies the operating-system user who runs the command. */
export const commander: Effect.Effect<Operator> = Effect.sync(() => ({ name: userName(), via: "command" }))

/** Creates or updates a person, by external id if one is given. */
export const put = (
  { people }: ProvisioningContract,
  by: Operator,
  external_id: string | undefined,
  wanted: Parameters<ProvisioningContract["people"]["create"]>[1]
) => (external_id === undefined ? people.create(by, wanted) : people.put(by, external_id, wanted))
