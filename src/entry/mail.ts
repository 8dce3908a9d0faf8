/** `tollgate/mail`: letters of an account to its own verified address, admitted and charged. */
import { Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import { Outbox } from "../mail/Outbox.ts"
import { SelfMail } from "../mail/SelfMail.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { Belonging } from "../tenants/Belonging.ts"
import { Tenants } from "../tenants/Tenants.ts"
import "./contracts.ts"

export { Gate, Outbox, SelfMail, Tenants }
export { layer as layerSecret } from "../auth/DeploymentSecret.ts"
export { SelfLetter } from "../mail/Letter.ts"
export { LetterPrice } from "../mail/Settings.ts"
export * from "../mail/Problems.ts"
export { PriceList } from "../prices/PriceList.ts"
export { Mail } from "../upstream/Mail.ts"

/** Mail to oneself behind the gate; wants a database, the secret, the mail server, the price of a letter and what a new account is given. */
export const layer = SelfMail.layer.pipe(
  Layer.provideMerge(Outbox.layer),
  Layer.provideMerge(Tenants.layer),
  Layer.provideMerge(Belonging.layer),
  Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer))
)

/** The loops of `layer`: letters that could not leave at once, and what ended programs left reserved. */
export const layerJobs = Layer.mergeAll(Gate.layerJobs, Outbox.layerJobs)
