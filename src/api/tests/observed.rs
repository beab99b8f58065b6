//! What the api tells an observer about each call.

use super::world::simulate;

#[test]
fn the_observer_learns_which_call_is_which_proposal_or_view() {
    simulate(1, None, |world| async move {
        let root = world.guard().await;
        let longest = "x".repeat(64);
        let longer = "x".repeat(65);
        world.told.take();
        for (id, told) in [
            ("put-1", "put-1"),
            (longest.as_str(), longest.as_str()),
            (longer.as_str(), ""),
        ] {
            root.clone()
                .and("x-request-id", id)
                .set("foo", "bar")
                .await
                .unwrap();
            assert_eq!(world.told.take(), [("proposed", told.to_owned())]);
        }
        root.set("foo", "bar").await.unwrap();
        assert_eq!(world.told.take(), [("proposed", String::new())]);
        for serializable in [true, false] {
            root.clone()
                .and("x-request-id", "get-1")
                .get("foo", serializable)
                .await
                .unwrap();
            assert_eq!(world.told.take(), [("served", "get-1".to_owned())]);
        }
        let client = world.client(0).with("x-request-id", "login-1");
        client.login("alice", "alicepw").await.unwrap();
        assert_eq!(world.told.take(), [("proposed", "login-1".to_owned())]);
        client.login("alice", "wrong").await.unwrap_err();
        assert_eq!(world.told.take(), [("served", "login-1".to_owned())]);
        let bad = world
            .client(0)
            .with("token", "garbage")
            .and("x-request-id", "bad-1");
        bad.set("foo", "bar").await.unwrap_err();
        assert_eq!(world.told.take(), [("served", "bad-1".to_owned())]);
    });
}
