/** `tollgate/mail`: emails that are sent after their transaction commits, and metered emails to yourself. */
import { Layer } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import { SelfMail } from "../../calls/email/SelfMail.ts"
import { Belonging } from "../../people/tenants/Belonging.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Outbox, SelfMail, Tenants }
export { layer as layerSecret } from "../../storage/secret/DeploymentSecret.ts"
export { SelfLetter } from "../../people/mail/Letter.ts"
export * from "../../people/mail/Problems.ts"
export { fields as settings, layer as layerSettings, LetterLimits, LetterPrice } from "../../people/mail/Settings.ts"
export { PriceList } from "../../books/prices/PriceList.ts"
export { Mail } from "../../upstream/mail/Mail.ts"
export { Payers } from "../../books/gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../../books/gate/Problems.ts"
export { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"

/** The outbox, and email to yourself with admission. Requires a database, the secret, `Mail`, `LetterPrice`, `Payers` and `PriceList`. */
export const layer = SelfMail.layer.pipe(
  Layer.provideMerge(Layer.merge(Outbox.layer, layerGate)),
  Layer.provideMerge(Tenants.layer),
  Layer.provideMerge(Belonging.layer)
)

/** The loops of `layer`. They send due emails and release the reservations of processes that have stopped. */
export const layerJobs = Layer.mergeAll(Gate.layerJobs, Outbox.layerJobs)
