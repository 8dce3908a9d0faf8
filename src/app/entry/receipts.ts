/** `tollgate/receipts`: verifies receipts and proofs of liabilities without dependencies, in Node, browsers and Deno. */
export * from "../../money/receipts/LiabilityVerifier.ts"
export { otherBodies } from "../../money/receipts/BodyVerifier.ts"
export type { CallBodies } from "../../money/receipts/BodyVerifier.ts"
export { gaps } from "../../money/receipts/GapVerifier.ts"
export { read, ReceiptInvalid, verify } from "../../money/receipts/Verifier.ts"
export type { ReceiptEntry, ReceiptFile, VerifiedReceipt, VerifyOptions } from "../../money/receipts/Verifier.ts"
