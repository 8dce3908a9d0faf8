/** The texts of the page of invitations. */

export const invitationTexts = {
  title: "Invitation",
  transferTitle: (name: string) => `${name} sends you credit`,
  teamTitle: (name: string) => (name === "" ? "You are invited to a team" : `${name} invites you to a team`),
  teamUntil: (day: string) => `Good until ${day}.`,
  teamEnded: {
    accepted: "This invitation has been accepted already.",
    revoked: "This invitation was taken back.",
    expired: "This invitation has expired. Ask for another."
  },
  whatIsIt: "Credit pays for calls to AI models on this service. One credit is one US dollar.",
  forAddress: (masked: string) => `For ${masked}. Sign in with that address; an account is made by signing in.`,
  until: (day: string) => `Good until ${day}. After that it goes back to the sender.`,
  signedIn: (email: string) => `You are signed in as ${email}.`,
  accept: "Accept",
  acceptAmount: (amount: string) => `Accept ${amount}`,
  later: "Decide later",
  laterText: "It waits under Transfers.",
  join: "Join the team",
  joined: (team: string) => `You are a member of ${team}.`,
  otherAddress: "Sign out and use another address",
  mismatch: "This invitation was sent to another address than the one that you are signed in with.",
  ended: {
    accepted: "This transfer has been accepted already.",
    declined: "This transfer was declined. The credit went back to its sender.",
    revoked: "The sender has taken this transfer back.",
    expired: "This transfer has expired. The credit went back to its sender."
  },
  missing: "This invitation does not exist, or no longer",
  missingText: "Its link may be cut off, or a later email has replaced it. Open the newest email, or ask for another.",
  none: "No invitation was opened",
  noneText: "Open the link in the email again.",
  home: "Go to the console"
} as const
