/** `tollgate/receipts`: verifies receipts without dependencies, in Node, browsers and Deno. */
export * from "../../money/receipts/Verifier.ts"
