/** The texts of the invitation page. */

export const invitationTexts = {
  title: "Invitation",
  transferTitle: (name: string) => `${name} sent you credit`,
  teamTitle: (name: string) => (name === "" ? "You are invited to a team" : `${name} invited you to a team`),
  teamUntil: (day: string) => `Valid until ${day}.`,
  teamEnded: {
    accepted: "This invitation has already been accepted.",
    revoked: "This invitation was withdrawn.",
    expired: "This invitation has expired. Ask for a new one."
  },
  whatIsIt: "Credit pays for calls to AI models on this service. One credit is one US dollar.",
  forAddress: (masked: string) =>
    `Sent to ${masked}. Sign in with that address. If you have no account, one is created.`,
  until: (day: string) => `Valid until ${day}. After that, the credit returns to the sender.`,
  signedIn: (email: string) => `You are signed in as ${email}.`,
  accept: "Accept",
  acceptAmount: (amount: string) => `Accept ${amount}`,
  later: "Decide later",
  laterText: "You will find it under Transfers.",
  join: "Join the team",
  joined: (team: string) => `You are now a member of ${team}.`,
  otherAddress: "Sign out and use another address",
  mismatch: "This invitation was sent to a different address. Sign in with that address.",
  ended: {
    accepted: "This transfer has already been accepted.",
    declined: "This transfer was declined. The credit went back to its sender.",
    revoked: "The sender withdrew this transfer.",
    expired: "This transfer has expired. The credit went back to its sender."
  },
  missing: "This invitation does not exist or is no longer valid",
  missingText:
    "The link may be incomplete, or a later email may have replaced it. Open the newest email or ask for a new one.",
  none: "No open invitation",
  noneText: "Open the link in the email again.",
  home: "Go to the console"
} as const
