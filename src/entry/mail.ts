/** `tollgate/mail`: letters that leave after the transaction that is their cause, and letters to oneself, charged. */
import { Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import { Outbox } from "../mail/Outbox.ts"
import { SelfMail } from "../mail/SelfMail.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { layer as layerGate } from "./gate.ts"
import "./contracts.ts"

export { Outbox, SelfMail, Tenants }
export { layer as layerSecret } from "../auth/DeploymentSecret.ts"
export { SelfLetter } from "../mail/Letter.ts"
export * from "../mail/Problems.ts"
export { fields as settings, layer as layerSettings, LetterLimits, LetterPrice } from "../mail/Settings.ts"
export { PriceList } from "../prices/PriceList.ts"
export { Mail } from "../upstream/Mail.ts"
export { Payers } from "../gate/Payers.ts"
export { InsufficientCredits, ModelNotAllowed } from "../gate/Problems.ts"
export { BooksUnavailable } from "../ledger/Problems.ts"

/** The outbox, and mail to oneself behind the gate. Needs a database, the secret, `Mail`, `LetterPrice`, `Payers` and `PriceList`. */
export const layer = SelfMail.layer.pipe(
  Layer.provideMerge(Layer.merge(Outbox.layer, layerGate)),
  Layer.provideMerge(Tenants.layer),
  Layer.provideMerge(Belonging.layer)
)

/** The loops of `layer`: letters that are due, and reservations that ended processes left. */
export const layerJobs = Layer.mergeAll(Gate.layerJobs, Outbox.layerJobs)
